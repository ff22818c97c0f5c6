# shellcheck shell=bash
# What a step of the set-up needs to speak, log, retry and remember. Sourced by each step.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
readonly state="$root/.setup" # logs, and what has been done
mkdir -p "$state"

say() {
    printf 'setup: %s\n' "$*"
}

# fail WHAT-AND-HOW-TO-MEND: one line, and the step ends.
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
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
    local name=$1 log="$state/$1.log"
    shift
    printf '\n$ %s\n' "$*" >>"$log"
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        tail -n 25 "$log" >&2
        fail "$name failed at: $*. The whole log: ${log#"$root/"}"
    fi
}

# retried COMMAND …: registries are sometimes unreachable for a moment; try three times.
retried() {
    local attempt
    for attempt in 1 2 3; do
        if "$@"; then return; fi
        [ "$attempt" -eq 3 ] || sleep $((attempt * 5))
    done
    return 1
}

# fingerprint PATH …: one hash over the names and contents of files (folders: all files in them).
fingerprint() {
    (
        cd "$root"
        find "$@" -type d \( -name target -o -name __pycache__ \) -prune -o -type f -print0 |
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
