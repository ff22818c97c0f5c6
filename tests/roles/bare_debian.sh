#!/usr/bin/env bash
# `make roles`: provision a bare Debian from scratch in a disposable root, twice. Needs root, mmdebstrap and a network.
#
# bare_debian.sh [FOLDER]: the root is made in FOLDER (default: a new one in /var/tmp) and removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ "$(id -u)" -eq 0 ] || { echo "make roles: mounts need root: run it with sudo" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "make roles: install mmdebstrap (apt-get install mmdebstrap)" >&2; exit 2; }

folder=${1:-$(mktemp -d /var/tmp/loko-bare-XXXXXX)}
readonly folder here=$PWD
trap 'rm -rf --one-file-system "$folder"' EXIT
readonly root="$folder/root" suite=${SUITE:-bookworm}

started=$SECONDS
step() { printf '%4d s  %s\n' $((SECONDS - started)) "$*"; }

step "a bare $suite with git, make and ca-certificates"
mmdebstrap --quiet --variant=apt --include=ca-certificates,git,make "$suite" "$root" \
    ${MIRROR:+"$MIRROR"} >"$folder/mmdebstrap.log" 2>&1 || { tail -n 5 "$folder/mmdebstrap.log" >&2; exit 1; }

tests/roles/same_sources.sh "$root"
mkdir -p "$root/srv/loko"
git -c safe.directory='*' ls-files -z | xargs -0 tar -c | tar -x -C "$root/srv/loko"

# inside SCRIPT: run it on the bare machine.
inside() {
    # shellcheck disable=SC2016 # its own parameters
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount --make-rprivate /
        for place in /dev /sys; do mount --rbind $place "$1$place"; done
        mount -t proc proc "$1/proc"
        mount -t tmpfs tmp "$1/tmp"
        exec chroot "$1" /bin/bash -c "cd /srv/loko && $2"' bash "$root" "$1"
}
readonly outcomes="OUTCOMES=/srv/outcomes ANSIBLE_CALLBACK_PLUGINS=tests/roles/callback ANSIBLE_CALLBACKS_ENABLED=outcomes"
readonly playbook="$outcomes setup/with-tools ansible-playbook playbooks/provision.yml"
changes() { python3 -c 'import json, sys; print(sum(t["outcome"] == "changed" for t in json.load(open(sys.argv[1]))))' "$root/srv/outcomes"; }

step "what set-up would do"
inside "setup/all.sh --check"
step "make setup"
inside "make --no-print-directory setup"
step "the playbook, where make setup has been"
inside "$playbook" >"$folder/play.log" || { tail -n 30 "$folder/play.log" >&2; exit 1; }
first=$(changes)
step "a program, a package and the environment's command are taken away; the playbook"
inside "dpkg --purge mgen && rm .venv/bin/loko switch-emulator/target/release/zodiac-fx"
inside "$playbook" >"$folder/play.log" || { tail -n 30 "$folder/play.log" >&2; exit 1; }
mended=$(changes)
step "the playbook again"
inside "$playbook" >"$folder/play.log" || { tail -n 30 "$folder/play.log" >&2; exit 1; }
second=$(changes)
inside ".venv/bin/loko evaluate table2 --out /tmp/results" | tail -n 3
step "changed: $first, after the damage $mended, then $second"
[ "$first" -eq 0 ] && [ "$mended" -eq 3 ] && [ "$second" -eq 0 ]
cd "$here"
