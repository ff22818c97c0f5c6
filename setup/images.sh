#!/usr/bin/env bash
# images.sh: the two container images of docs/containerlab.md, from Debian packages and our own build. No image is
# pulled. Where Docker does not answer, the file systems are made all the same (prebuilt/images), to be brought to
# another machine; there this only imports them.
. "$(dirname "$0")/step.sh"
. "$root/setup/prebuilt.sh"
alone

# The program of this machine runs in the image, so that has the same release.
suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-bookworm}")
components=main
if (. /etc/os-release && [ "$ID" = ubuntu ]); then components=main,universe; fi # there mgen is in universe
readonly suite components images="$prebuilt/images" project=loko-testbed
# What each image holds: zodiac-fx and a shell; what a host of a lab sends, shapes and captures with.
readonly emulator_packages=busybox-static,libgcc-s1 host_packages=busybox-static,iproute2,ethtool,tcpdump,mgen,iputils-ping
rm -f "$state/images.log"

# of FILE …: one hash over their contents, wherever they lie.
of() {
    cat "$@" | sha256sum | cut -d ' ' -f 1
}

# file_system NAME PACKAGES KEY [FILE PLACE …]: a tar with packages, busybox for all else, and files; as KEY says.
file_system() {
    local image=$1 packages=$2 key=$3 file="$images/$1.tar" hooks=()
    shift 3
    if [ -f "$file" ] && [ "$(cat "$images/$image.key" 2>/dev/null)" = "$key" ]; then return; fi
    dpkg-query -W mmdebstrap >/dev/null 2>&1 || "$root/setup/apt-install.sh" images mmdebstrap
    say "making the image $project/$image"
    while [ $# -gt 0 ]; do
        hooks+=(--extract-hook="copy-in $1 $2")
        shift 2
    done
    mkdir -p "$images"
    rm -f "$images/$image.key"
    # shellcheck disable=SC2016 # $1 is mmdebstrap's
    logged images mmdebstrap --variant=extract --components="$components" --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/*' --aptopt='APT::Install-Recommends "false"' \
        --extract-hook='cd "$1" && mkdir -p run tmp root proc sys dev etc usr/bin usr/sbin bin sbin' \
        --extract-hook='chroot "$1" /bin/busybox --install -s' \
        --extract-hook='rm -rf "$1"/usr/share/* "$1"/var/lib/apt "$1"/var/cache' \
        "${hooks[@]}" "$suite" "$file"
    printf '%s\n' "$key" >"$images/$image.key"
}

# import NAME COMMAND [CHANGE …]: give the image to Docker, unless it has this one.
import() {
    local image="$project/$1:latest" sum changes=(--change "CMD $2") change
    for change in "${@:3}"; do changes+=(--change "$change"); done
    sum=$(sha256sum "$images/$1.tar" | cut -d ' ' -f 1)
    if [ "$(as_root docker inspect --format '{{index .Config.Labels "sum"}}' "$image" 2>/dev/null)" = "$sum" ]; then return; fi
    say "importing $image ($(du -h "$images/$1.tar" | cut -f 1))"
    logged images as_root docker import "${changes[@]}" --change "LABEL sum=$sum" "$images/$1.tar" "$image"
}

[ -x "$emulator" ] || fail "the emulator is not built: run 'make setup' first"
program="$emulator" # of prebuilt/, if there is no Rust
if find_rust >/dev/null; then
    "$root/setup/dist.sh"
    program="$shipped/zodiac-fx"
fi
file_system zodiac-fx "$emulator_packages" "$suite $(emulator_key) $(of "$root/setup/container/start-board" "$0")" \
    "$program" /usr/bin "$root/setup/container/start-board" /usr/bin
file_system host "$host_packages" "$suite $(of "$0")"
root_for "importing images into Docker"
if ! as_root docker info >/dev/null 2>&1; then
    say "Docker does not answer: the images are in ${images#"$root/"}, and not imported. Start it, then repeat."
    exit 0
fi
import zodiac-fx '["/usr/bin/start-board"]' 'HEALTHCHECK --interval=5s CMD test -e /run/ready'
import host '["/bin/sleep", "infinity"]'
