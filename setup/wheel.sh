#!/usr/bin/env bash
# wheel.sh: build dist/loko_testbed-*.whl, to be installed with pip on other machines. It contains everything that runs
# without Mininet, with the emulator that dist.sh builds.
. "$(dirname "$0")/step.sh"
alone
use_tools

"$root/setup/dist.sh"
begin wheel
rm -f "$build"/dist/loko_testbed-*.whl
export CARGO_TARGET_DIR="$target"
logged wheel uv build --quiet --wheel --no-build-isolation --python "$venv/bin/python" --out-dir "$build/dist" "$root"
for wheel in "$build"/dist/*.whl; do
    say "written: ${wheel#"$root/"} ($(du -h "$wheel" | cut -f 1))"
done
