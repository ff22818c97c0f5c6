# shellcheck shell=bash
# Functions for messages, logs, retries and completed work. Sourced by each set-up step.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
. "$(dirname "${BASH_SOURCE[0]}")/trouble.sh"

# With --check as its first argument, every step reports what it would do and does nothing.
checking=false
if [ "${1:-}" = --check ]; then
    checking=true
    shift
fi

say() {
    printf 'setup: %s\n' "$*"
}

# fail MESSAGE: print what is wrong and how to fix it in one line, and end the step.
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# changing WHAT: announce a change; with --check, exit.
changing() {
    say "$*"
    if $checking; then exit 0; fi
}

# Only one set-up of a build folder runs at a time: each step begins with `alone`. Its child processes inherit the open
# lock file (descriptor 9), so the lock lasts exactly as long as any of them, even if make or the step itself is killed.
readonly at_work="$state/lock" wait_s=${LOKO_SETUP_WAIT_S:-3600}
outermost=false # does this script itself hold the lock, and not the script that started it?

# alone: wait until no other set-up of this folder runs. If the folder is not writable, there is nothing to lock.
alone() {
    if $checking || [ "/proc/$BASHPID/fd/9" -ef "$at_work" ]; then return; fi
    while :; do
        if [ ! -e "$at_work" ]; then
            mkdir -p "$state" 2>/dev/null && touch "$at_work" 2>/dev/null || return 0
            if lent; then chown -h --reference="$build" "$state" "$at_work"; fi
        fi
        [ -r "$at_work" ] || return 0
        exec 8<"$at_work"
        if ! flock --nonblock 8; then
            say "another set-up of this folder is at work ($(holder)): waiting until it has ended" >&2
            flock --timeout "$wait_s" 8 ||
                fail "another set-up of this folder is still at work after $wait_s s: end it ($(holder)), then repeat"
        fi
        exec 9<&8 8<&-
        if [ "/proc/$BASHPID/fd/9" -ef "$at_work" ]; then break; fi # else it was removed in between ('make clean')
    done
    outermost=true
}

# holder: describe the first process of the set-up that holds the lock.
holder() {
    local descriptor process parent
    for descriptor in /proc/[0-9]*/fd/9; do
        [ "$descriptor" -ef "$at_work" ] || continue
        process=${descriptor#/proc/}
        process=${process%/fd/9}
        parent=$(awk '$1 == "PPid:" { print $2 }' "/proc/$process/status" 2>/dev/null) || continue
        if [ "/proc/$parent/fd/9" -ef "$at_work" ]; then continue; fi
        printf 'process %s: %s' "$process" "$(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null | cut -c -200 | sed 's/ *$//')"
        return
    done
    printf "another user's process"
}

# Ctrl-C reaches every process of a set-up; only one of them reports it.
interrupted() {
    if $outermost; then printf 'setup: interrupted: repeat it to go on; what is done is kept\n' >&2; fi
    exit 130
}
trap interrupted INT

# begin NAME: start the step's log anew. Earlier results of NAME do not count until `remember` is called.
begin() {
    mkdir -p "$state" 2>/dev/null || true
    [ -w "$state" ] ||
        fail "cannot write into $state: make room if the disk is full; else give it to this user (chown -R), or build in another folder: LOKO_BUILD=/that/folder make setup"
    trap give_back EXIT
    rm -f "$state/$1.done" "$state/$1.log"
}

# room MEGABYTES FOLDER: fail early if the disk of FOLDER has less space left.
room() {
    local left folder=$2
    until [ -e "$folder" ]; do folder=$(dirname "$folder"); done # it is created later
    left=$(df -Pm "$folder" | awk 'NR == 2 { print $4 }')
    [ "$left" -ge "$1" ] ||
        fail "the disk is full: $2 has $left MB left and this needs $1 MB; make room, then repeat. What is done is kept."
}

# root_for WHAT: fail early if WHAT needs root but cannot get it. Call it where output still goes to the terminal: that
# of commands goes to the log.
root_for() {
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        fail "$1 needs root, and sudo is not installed: run 'make setup' once as root"
}

# as_root COMMAND …: run it as root, with sudo only if needed. A service that it starts does not hold the lock.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@" 9<&-
    else
        root_for "'$1'"
        sudo -- "$@" 9<&-
    fi
}

# logged NAME COMMAND …: run COMMAND with its output in .setup/NAME.log; print the end of the log if it fails.
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

# retried COMMAND …: try up to three times, as registries are sometimes unreachable for a moment.
retried() {
    local attempt
    for attempt in 1 2 3; do
        if "$@"; then return; fi
        [ "$attempt" -eq 3 ] || sleep $((attempt * ${LOKO_SETUP_PAUSE_S:-5}))
    done
    return 1
}

# fingerprint PATH …: a hash over the names and contents of files; for folders, of all files in them except build
# results and fuzz targets, which are not installed.
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
