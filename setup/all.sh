#!/usr/bin/env bash
# Install everything: each step looks first whether there is anything to do.
. "$(dirname "$0")/step.sh"

for step in packages openvswitch rust uv python emulator; do
    "$root/setup/$step.sh"
done
