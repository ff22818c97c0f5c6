#!/usr/bin/env bash
# unchanged.sh TARGET PATH … -- COMMAND …: run COMMAND, of the Makefile's target TARGET. As a step of several
# (in-turn.sh), do not repeat it if these files and folders and the tools are the same as when it last succeeded: for
# checks that depend on nothing else.
. "$(dirname "$0")/step.sh"
use_tools

target_name=$1
shift
paths=()
while [ "$1" != -- ]; do
    paths+=("$1")
    shift
done
shift

readonly name="check-$target_name" # some steps of the set-up have the names of targets

# settings: print the variables that change what Rust's tests do, or how they are built.
settings() {
    env | grep -E '^(CARGO_|RUST|PROPTEST_|DIAGNOSIS_)' | LC_ALL=C sort
}

# key COMMAND …: a word for all that decides the outcome; fails if a path does not exist.
key() {
    local files
    files=$(fingerprint "${paths[@]}" requirements.lock) || return 1
    printf '%s-%s' "$files" "$(printf '%s ' "$(rustc --version 2>&1)" "$(settings)" "$@" | sha256sum | cut -c 1-16)"
}

before=$(key "$@")
if [ -n "${SKIP_UNCHANGED:-}" ] && done_before "$name" "$before"; then
    printf '%s: unchanged since it passed; to repeat it: make %s\n' "$target_name" "$target_name"
    exit 0
fi
begin "$name"
cd "$root"
"$@"
if [ "$(key "$@")" = "$before" ]; then remember "$name" "$before"; fi # else they were edited meanwhile
