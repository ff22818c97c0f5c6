# shellcheck shell=bash
# What a step of the set-up needs to speak, log, retry and remember. Sourced by each step.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
. "$(dirname "${BASH_SOURCE[0]}")/trouble.sh"
readonly state="$root/.setup" # logs, and what has been done

# Every step takes --check first: it then says what it would do, and does nothing.
checking=false
if [ "${1:-}" = --check ]; then
    checking=true
    shift
fi

say() {
    printf 'setup: %s\n' "$*"
}

# fail WHAT-AND-HOW-TO-MEND: one line, and the step ends.
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# changing WHAT: announce a change that is about to be made; with --check that is all.
changing() {
    say "$*"
    if $checking; then exit 0; fi
}

# begin NAME: what NAME left no longer counts, until it is remembered; its log begins anew.
begin() {
    mkdir -p "$state" 2>/dev/null || true
    [ -w "$state" ] ||
        fail "cannot write into $state: make room if the disk is full; else give it to this user (chown -R)"
    rm -f "$state/$1.done" "$state/$1.log"
}

# room MEGABYTES FOLDER: fail before anything is half done if the disk of FOLDER has less left.
room() {
    local left
    left=$(df -Pm "$2" | awk 'NR == 2 { print $4 }')
    [ "$left" -ge "$1" ] ||
        fail "the disk is full: $2 has $left MB left and this needs $1 MB; make room, then repeat. What is done is kept."
}

# as_root COMMAND …: run it as root; sudo only when needed.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        fail "'$1' needs root, and sudo is not installed. Run 'make setup' once as root."
    fi
}

# logged NAME COMMAND …: run COMMAND with its output in .setup/NAME.log; show the log's tail when it fails.
logged() {
    local name=$1 log="$state/$1.log" reason
    shift
    printf '\n$ %s\n' "$*" >>"$log"
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        if reason=$(trouble "$log"); then fail "$reason. The whole log: ${log#"$root/"}"; fi
        tail -n 25 "$log" >&2
        fail "$name failed at: $*. The whole log: ${log#"$root/"}"
    fi
}

# retried COMMAND …: registries are sometimes unreachable for a moment; try three times.
retried() {
    local attempt
    for attempt in 1 2 3; do
        if "$@"; then return; fi
        [ "$attempt" -eq 3 ] || sleep $((attempt * ${LOKO_SETUP_PAUSE_S:-5}))
    done
    return 1
}

# fingerprint PATH …: one hash over the names and contents of files (folders: all files in them, but none of what was
# built, and no fuzz targets, of which nothing is installed).
fingerprint() {
    (
        cd "$root"
        find "$@" -type d \( -name target -o -name __pycache__ -o -path switch-emulator/fuzz \) -prune -o -type f -print0 |
            LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
    )
}

# done_before NAME KEY: was step NAME completed with this KEY?
done_before() {
    [ -f "$state/$1.done" ] && [ "$(cat "$state/$1.done")" = "$2" ]
}

# remember NAME KEY: step NAME is complete.
remember() {
    printf '%s\n' "$2" >"$state/$1.done"
}
