#!/usr/bin/env bash
# image.sh: the container image loko-testbed/replay of this checkout's commit, then a table replayed in it. Its base is
# Debian's, fetched if it is not there; BASE names another, such as one from `mmdebstrap bookworm - | docker import -`.
. "$(dirname "$0")/../step.sh"
alone
. "$root/setup/container/docker.sh"

need_docker
git -C "$root" rev-parse --verify --quiet HEAD >/dev/null ||
    fail "$root is no git checkout, and results name the commit that made them: clone the repository, then repeat"
[ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] || say "note: the image has none of the changes that are not committed"
room 6000 "$build"

context=$(mktemp -d "${TMPDIR:-/tmp}/loko-image-XXXXXX")
readonly context
trap 'rm -rf "$context"; give_back' EXIT
git clone --quiet --depth 1 "file://$root" "$context/loko"
git -C "$context/loko" remote remove origin
# shellcheck disable=SC2154 # of environment.sh
if [ -d "$prebuilt" ]; then cp -a "$prebuilt" "$context/loko/prebuilt"; fi
build_image replay "$context/loko/setup/container/Containerfile" "$context/loko"

say "trying it"
"$docker" run --rm --network none loko-testbed/replay loko evaluate table2 --strict --out /results >>"$state/replay-image.log" 2>&1 ||
    fail "the image is built, but does not replay table2: see ${state#"$root/"}/replay-image.log"
tell_image replay
