#!/usr/bin/env bash
# all.sh [--check] [STEP …]: install everything, or only these steps; each first checks whether anything is missing.
. "$(dirname "$0")/step.sh"
alone

check=()
if $checking; then check=(--check); fi
[ $# -gt 0 ] || set -- packages openvswitch rust uv python emulator
for step in "$@"; do
    "$root/setup/$step.sh" "${check[@]}"
done
