#!/usr/bin/env bash
# run.sh [--seconds N] [TARGET …]       fuzz these targets (all, a minute each), as many at once as there are cores
# run.sh TARGET INPUT                   run one input, such as one that made the target fail
# run.sh keep TARGET INPUT [NAME]       keep an input that failed: a file of regressions/, which every `make test` replays
# run.sh merge [TARGET …]               keep what covers something new: files of corpus/, which every `make test` replays
#
# Programs, inputs found and inputs that failed are in switch-emulator/target/fuzzing.
set -euo pipefail
from=$PWD
readonly from
cd "$(dirname "${BASH_SOURCE[0]}")"
readonly work="${CARGO_TARGET_DIR:-$PWD/../target}/fuzzing"
readonly programs=$work/bin found=$work/corpus artifacts=$work/artifacts
# Longest input that goes into corpus/: they are many, and replayed often.
readonly longest_kept=2048

wrong() {
    printf 'fuzz: %s\n' "$*" >&2
    exit 2
}

mapfile -t all < <(basename -s .rs fuzz_targets/*.rs)
is_target() {
    [ -f "fuzz_targets/$1.rs" ] || wrong "there is no target $1; there are: ${all[*]}"
}

# input PATH: the same seen from here.
input() {
    if [[ $1 = /* ]]; then printf '%s\n' "$1"; else printf '%s\n' "$from/$1"; fi
}

# told PATH: the same seen from the project's folder, where make is called.
told() {
    realpath --relative-to=../.. "$1"
}

# fuzz TARGET SECONDS: one target; its log is beside its artifacts.
fuzz() {
    local target=$1 log="$artifacts/$1.log" status=0
    mkdir -p "$found/$target" "$artifacts/$target"
    # No allocation, no board and no input is large: far below these limits, or it is a bug. What is found goes into
    # the first folder.
    "$programs/$target" -max_total_time="$2" -timeout=20 -rss_limit_mb=1024 -max_len=16384 -dict=openflow.dict \
        -print_final_stats=1 -artifact_prefix="$artifacts/$target/" \
        "$found/$target" "corpus/$target" "regressions/$target" >"$log" 2>&1 &
    # shellcheck disable=SC2064 # this program, not a later one
    trap "kill $!" TERM
    wait $! || status=$?
    statistic() { sed -n "s/^stat::$1: *//p" "$log"; }
    if [ "$status" -eq 0 ]; then
        printf 'fuzz: %s: %s executions in %s s, %s edges covered, %s inputs found, %s MB at most\n' "$target" \
            "$(statistic number_of_executed_units)" "$2" \
            "$(grep -ao 'cov: [0-9]*' "$log" | tail -n 1 | cut -c 6-)" \
            "$(find "$found/$target" -type f | wc -l)" "$(statistic peak_rss_mb)"
        return
    fi
    local input reason
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    [ -z "$input" ] || input=$(told "$input")
    reason=$(sed -n '/panicked at/,/stack backtrace:/p' "$log" | grep -av 'stack backtrace:' | head -n 6)
    [ -n "$reason" ] || reason=$(grep -a 'ERROR: libFuzzer' "$log" || tail -n 5 "$log")
    {
        printf 'fuzz: %s failed (log: %s)\n' "$target" "$(told "$log")"
        printf '%s\n' "$reason"
        [ -z "$input" ] || {
            printf "fuzz: reproduce with: make fuzz ARGS='%s %s'\n" "$target" "$input"
            printf "fuzz: keep it with: make fuzz ARGS='keep %s %s what-failed'\n" "$target" "$input"
            # Where nobody can fetch the file.
            [ -z "${CI:-}" ] || printf 'fuzz: the input, for base64 --decode: %s\n' "$(base64 -w 0 "../../$input")"
        }
    } >&2
    return 1
}

# keep TARGET INPUT [NAME]
keep() {
    if [ $# -lt 2 ] || [ $# -gt 3 ]; then
        wrong "keep wants a target, an input and perhaps a name: keep ${all[0]} FILE NAME"
    fi
    is_target "$1"
    local source name kept
    source=$(input "$2")
    [ -f "$source" ] || wrong "there is no input $2"
    name=${3:-$(sha1sum "$source" | cut -c 1-16)}
    [[ $name =~ ^[a-z0-9][a-z0-9-]*$ ]] || wrong "a name has small letters, digits and hyphens, unlike '$name'"
    kept=regressions/$1/$name
    mkdir -p "regressions/$1"
    cp "$source" "$kept"
    printf 'fuzz: commit switch-emulator/fuzz/%s; every make test replays it\n' "$kept"
}

# merge [TARGET …]: adds to corpus/ what covers code that it does not cover yet.
merge() {
    local target before after
    for target in "${@:-${all[@]}}"; do
        is_target "$target"
        [ -d "$found/$target" ] || wrong "nothing was found for $target yet: make fuzz ARGS='$target' finds some"
        mkdir -p "corpus/$target"
        before=$(find "corpus/$target" -type f | wc -l)
        # Which code, not how often: else the corpus would have thousands of files.
        "$programs/$target" -merge=1 -use_counters=0 -max_len="$longest_kept" -timeout=20 -rss_limit_mb=1024 \
            "corpus/$target" "$found/$target" >"$artifacts/$target.merge.log" 2>&1 ||
            wrong "merging failed (log: $(told "$artifacts/$target.merge.log"))"
        after=$(find "corpus/$target" -type f | wc -l)
        printf 'fuzz: %s: %s inputs more, %s now, in switch-emulator/fuzz/corpus/%s\n' "$target" \
            "$((after - before))" "$after" "$target"
    done
}

seconds=60
chosen=()
case ${1:-} in
keep)
    shift
    keep "$@"
    exit
    ;;
merge)
    shift
    merge "$@"
    exit
    ;;
esac
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=${2:-}
        [[ $seconds =~ ^[1-9][0-9]*$ ]] || wrong "--seconds wants a whole number of seconds, such as --seconds 3600"
        shift 2
        ;;
    *)
        if [ "${#chosen[@]}" -eq 1 ] && [ -f "$(input "$1")" ]; then
            exec "$programs/${chosen[0]}" "$(input "$1")"
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
