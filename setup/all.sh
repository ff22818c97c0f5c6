#!/usr/bin/env bash
# all.sh [--check]: install everything; each step first checks whether anything is missing.
. "$(dirname "$0")/step.sh"
alone

check=()
if $checking; then check=(--check); fi
for step in packages openvswitch rust uv python emulator; do
    "$root/setup/$step.sh" "${check[@]}"
done
