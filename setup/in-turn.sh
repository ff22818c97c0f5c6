#!/usr/bin/env bash
# in-turn.sh NAME STEP …: run Makefile targets one after another, those joined by "+" in parallel, and print how long
# each took. The first of the joined targets prints its output at once, the others at the end. If a step fails, stop and
# print the command that repeats only that step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly whole=$1
shift
output=$(mktemp -d)
readonly output
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$output"' EXIT
names=() took=()

# now: milliseconds since a fixed time.
now() {
    printf '%s' "$((${EPOCHREALTIME/[.,]/} / 1000))"
}

# seconds MILLISECONDS: print them in seconds.
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

# begun STEP: start it, without the flags and arguments of the calling make, which are not meant for each step.
begun() {
    env -u MAKEFLAGS -u MFLAGS "${MAKE:-make}" --no-print-directory "$1" &
    step_of[$!]=$1
}

# A test or check that has passed is not repeated while files are the same: a test in Python while all of them are
# (passed_before.py), a check that depends on few while these are (unchanged.sh). `make test SKIP_UNCHANGED=` repeats
# all; whatever is called by its own name runs in any case.
export SKIP_UNCHANGED=${SKIP_UNCHANGED-1}

began=$(now)
for group in "$@"; do
    IFS=+ read -ra steps <<<"$group"
    broken=''
    declare -A step_of=()
    for step in "${steps[@]:1}"; do
        begun "$step" >"$output/$step" 2>&1
    done
    begun "${steps[0]}"
    start=$(now)
    while [ "${#step_of[@]}" -gt 0 ]; do
        status=0
        wait -n -p ended "${!step_of[@]}" || status=$?
        step=${step_of[$ended]}
        unset "step_of[$ended]"
        names+=("$step")
        took+=("$(($(now) - start))")
        if [ "$status" -ne 0 ]; then broken=${broken:-$step}; fi
    done
    for step in "${steps[@]:1}"; do
        cat "$output/$step"
    done
    if [ -n "$broken" ]; then
        summary >&2
        printf "%s: '%s' failed; repeat only that: make %s\n" "$whole" "$broken" "$broken" >&2
        exit 1
    fi
    if [ "$group" = setup ]; then export SETUP_IS_DONE=1; fi # for the following steps
done
summary
