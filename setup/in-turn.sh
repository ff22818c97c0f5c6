#!/usr/bin/env bash
# in-turn.sh NAME STEP …: run targets of the Makefile in turn, those joined by "+" at the same time, and say where the
# time went. The first that fails ends it, with the command that repeats only that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly whole=$1
shift
output=$(mktemp -d)
readonly output
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$output"' EXIT
names=() took=()

# now: milliseconds since some instant.
now() {
    printf '%s' "$((${EPOCHREALTIME/[.,]/} / 1000))"
}

# seconds MILLISECONDS: as text.
seconds() {
    printf '%d.%d' "$(($1 / 1000))" "$(($1 % 1000 / 100))"
}

summary() {
    local number
    printf '%s: %s s\n' "$whole" "$(seconds $(($(now) - began)))"
    for number in "${!names[@]}"; do
        printf '    %-14s %6s s\n' "${names[number]}" "$(seconds "${took[number]}")"
    done
}

# timed STEP: run it; its milliseconds are kept beside its output.
timed() {
    local start status=0
    start=$(now)
    # Without what the whole was called with: that is not for each of its steps.
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" --no-print-directory "$1" || status=$?
    printf '%s' "$(($(now) - start))" >"$output/$1.took"
    return "$status"
}

began=$(now)
for group in "$@"; do
    IFS=+ read -ra steps <<<"$group"
    broken=''
    if [ "${#steps[@]}" -eq 1 ]; then
        timed "$group" || broken=$group
    else
        declare -A running=()
        for step in "${steps[@]}"; do
            timed "$step" >"$output/$step" 2>&1 &
            running[$step]=$!
        done
        for step in "${steps[@]}"; do
            wait "${running[$step]}" || broken=${broken:-$step}
            cat "$output/$step"
        done
    fi
    for step in "${steps[@]}"; do
        names+=("$step")
        took+=("$(cat "$output/$step.took")")
    done
    if [ -n "$broken" ]; then
        summary >&2
        printf "%s: '%s' failed; repeat only that: make %s\n" "$whole" "$broken" "$broken" >&2
        exit 1
    fi
    if [ "$group" = setup ]; then export SETUP_IS_DONE=1; fi # for the steps that follow
done
summary
