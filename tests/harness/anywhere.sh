#!/usr/bin/env bash
# `make anywhere`: set up complete copies of the repository in unusual places, and run what a newcomer would. Needs
# root.
#
# anywhere.sh [FOLDER]: the copies are made in FOLDER (default: a new one in /tmp) and removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ "$(id -u)" -eq 0 ] || { echo "make anywhere: mounts need root: run it with sudo" >&2; exit 2; }
# Use a private mount namespace, whose mounts disappear with it.
[ "${1:-}" = --inside ] || exec unshare --mount --propagation private "$PWD/tests/harness/anywhere.sh" --inside "$@"
shift
unset LOKO_BUILD CARGO_TARGET_DIR SETUP_IS_DONE

folder=${1:-$(mktemp -d /tmp/loko-anywhere-XXXXXX)}
readonly folder clone="$folder/a clone" drive="$folder/another drive" somebody=12345
trap 'umount -l "$clone" "$drive" 2>/dev/null; rm -rf --one-file-system "$folder"' EXIT

started=$SECONDS
step() { printf '%4d s  %s\n' $((SECONDS - started)) "$*"; }
fail() {
    printf 'make anywhere: %s\n' "$*" >&2
    exit 1
}

# set_up: set up the clone; the second time nothing is left to do.
set_up() {
    make --no-print-directory -C "$clone" setup
    [ -z "$(make --no-print-directory -C "$clone" setup)" ] || fail "a second 'make setup' found something to do"
}

# tried FOLDER: run from another folder: the command line in virtual and real time, a playbook, a disposable root.
tried() {
    local loko="$1/.venv/bin/loko" out="$1/results/tried"
    (cd / && "$loko" figures >/dev/null && "$loko" evaluate fig17a --quick --out "$out/virtual" | tail -n 1)
    (cd / && "$loko" evaluate fig17a --mode live --points admitted --runs 1 --seconds 1 --sender simple --out "$out/live" | tail -n 1)
    make --no-print-directory -C "$clone" evaluate ARGS='-e mode=virtual -e figures=table2' | grep 'failed=0'
    (cd "$clone" && setup/with-tools pytest -q tests/roles/test_bad_days.py tests/roles/test_install.py)
}

step "a clone under /tmp, in a path with spaces"
mkdir -p "$clone" "$drive"
git -c safe.directory='*' ls-files -z --cached --others --exclude-standard | xargs -0 tar -c | tar -x -C "$clone"
set_up
tried "$clone"

step "that of another user, with root at work in it"
chown -R "$somebody" "$clone"
touch "$clone/switch-emulator/live/src/main.rs"
rm "$clone/.setup/emulator.done"
set_up
(cd "$clone" && setup/with-tools ruff check)
[ -z "$(find "$clone" -uid 0 -print -quit)" ] || fail "root left files in the folder of another user"
chown -R root "$clone"

step "read-only, with a build folder on another file system"
make --no-print-directory -C "$clone" clean
mount -t tmpfs -o size=4g drive "$drive"
mount --bind "$clone" "$clone"
mount -o remount,bind,ro "$clone"
export LOKO_BUILD="$drive/a build"
set_up
tried "$LOKO_BUILD"
step "done"
