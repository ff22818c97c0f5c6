# shellcheck shell=bash
# shellcheck disable=SC2154 # state is of environment.sh
# Sourced by the two steps that build container images. DOCKER names another program, such as podman; BASE the image to
# begin with, in place of Debian's.

readonly docker="${DOCKER:-docker}" base="${BASE:-}"

# need_docker: fail early if no image can be built here.
need_docker() {
    command -v "$docker" >/dev/null || fail "$docker is not installed: install docker.io or podman (DOCKER=podman), then repeat"
    "$docker" info >/dev/null 2>&1 || fail "$docker does not answer: start it, or use one that may (sudo, DOCKER_HOST), then repeat"
}

# build_image NAME CONTAINERFILE CONTEXT: build loko-testbed/NAME, with a log of its own.
build_image() {
    say "building the image loko-testbed/$1"
    rm -f "$state/$1-image.log"
    logged "$1-image" "$docker" build --tag "loko-testbed/$1" --file "$2" ${base:+--build-arg "BASE=$base"} "$3"
}

# tell_image NAME: print name and size of an image.
tell_image() {
    say "made: loko-testbed/$1 ($("$docker" image inspect --format '{{.Size}}' "loko-testbed/$1" | awk '{ printf "%.0f MB", $1 / 1e6 }'))"
}
