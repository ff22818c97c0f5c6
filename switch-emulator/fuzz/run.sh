#!/usr/bin/env bash
# run.sh [--seconds N] [TARGET …]       fuzz these targets (all, a minute each), as many at once as there are cores
# run.sh TARGET INPUT                   run one input, such as one that made the target fail
#
# Programs, inputs found and inputs that failed are in target/.
set -euo pipefail
from=$PWD
readonly from
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly corpus=target/corpus artifacts=target/artifacts

wrong() {
    printf 'fuzz: %s\n' "$*" >&2
    exit 2
}

mapfile -t all < <(basename -s .rs fuzz_targets/*.rs)
is_target() {
    [ -f "fuzz_targets/$1.rs" ] || wrong "there is no target $1; there are: ${all[*]}"
}

# fuzz TARGET SECONDS: one target; its log is beside its artifacts.
fuzz() {
    local target=$1 log="$artifacts/$1.log" status=0
    mkdir -p "$corpus/$target" "$artifacts/$target"
    # No allocation, no board and no input is large: far below these limits, or it is a bug.
    target/bin/"$target" -max_total_time="$2" -timeout=20 -rss_limit_mb=1024 -max_len=16384 -dict=openflow.dict \
        -print_final_stats=1 -artifact_prefix="$artifacts/$target/" "$corpus/$target" >"$log" 2>&1 &
    # shellcheck disable=SC2064 # this program, not a later one
    trap "kill $!" TERM
    wait $! || status=$?
    statistic() { sed -n "s/^stat::$1: *//p" "$log"; }
    if [ "$status" -eq 0 ]; then
        printf 'fuzz: %s: %s executions in %s s, %s edges covered, %s inputs kept, %s MB at most\n' "$target" \
            "$(statistic number_of_executed_units)" "$2" \
            "$(grep -ao 'cov: [0-9]*' "$log" | tail -n 1 | cut -c 6-)" \
            "$(find "$corpus/$target" -type f | wc -l)" "$(statistic peak_rss_mb)"
        return
    fi
    local input reason
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    reason=$(sed -n '/panicked at/,/stack backtrace:/p' "$log" | grep -av 'stack backtrace:' | head -n 6)
    [ -n "$reason" ] || reason=$(grep -a 'ERROR: libFuzzer' "$log" || tail -n 5 "$log")
    {
        printf 'fuzz: %s failed (log: switch-emulator/fuzz/%s)\n' "$target" "$log"
        printf '%s\n' "$reason"
        [ -z "$input" ] ||
            printf "fuzz: reproduce with: make fuzz ARGS='%s %s'\n" "$target" "switch-emulator/fuzz/$input"
    } >&2
    return 1
}

seconds=60
chosen=()
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=${2:-}
        [[ $seconds =~ ^[1-9][0-9]*$ ]] || wrong "--seconds wants a whole number of seconds, such as --seconds 3600"
        shift 2
        ;;
    *)
        input=$1
        [[ $input = /* ]] || input=$from/$input
        if [ "${#chosen[@]}" -eq 1 ] && [ -f "$input" ]; then
            exec "target/bin/${chosen[0]}" "$input"
        fi
        is_target "$1"
        chosen+=("$1")
        shift
        ;;
    esac
done
[ "${#chosen[@]}" -gt 0 ] || chosen=("${all[@]}")

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
failed=0
running=0
cores=$(nproc)
printf 'fuzz: %s, %s s each\n' "${chosen[*]}" "$seconds"
for target in "${chosen[@]}"; do
    if [ "$running" -ge "$cores" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" "$seconds" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
