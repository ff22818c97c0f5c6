#!/usr/bin/env bash
# Step 6: the program zodiac-fx and the Python module switch_emulator, from switch-emulator/.
. "$(dirname "$0")/step.sh"
alone
. "$root/setup/prebuilt.sh"
use_tools

# there: are the program and the module in the Python environment, which may have been recreated since?
there() {
    [ -x "$emulator" ] && [ "$venv/bin/zodiac-fx" -ef "$emulator" ] &&
        "$venv/bin/python" -c 'import switch_emulator' 2>/dev/null
}

if ! find_rust >/dev/null && prebuilt_emulator; then
    key=prebuilt-$(emulator_key)
    if done_before emulator "$key" && there; then exit 0; fi
    changing "installing the emulator that was built elsewhere"
    begin emulator
    logged emulator install -D -m 755 "$prebuilt/zodiac-fx" "$emulator"
    logged emulator uv pip install --python "$venv/bin/python" --no-deps --reinstall "$prebuilt"/module/*.whl
    ln -sfn "$emulator" "$venv/bin/zodiac-fx"
    remember emulator "$key"
    exit 0
fi

compiler=$(rustc --version 2>/dev/null | tr ' ' '-') || compiler=none # with --check it may not be installed yet
key=$(fingerprint switch-emulator)-$compiler-$root # the module contains the path of its profiles
if done_before emulator "$key" && there; then exit 0; fi

changing "building the emulator (Rust, release)"
if [ -d "$target" ]; then room 500 "$target"; else room 1500 "$target"; fi
begin emulator
rm -rf "$state/wheels"
export CARGO_TARGET_DIR="$target"
cd "$root/switch-emulator"
logged emulator retried cargo fetch --locked
# Build both at once: separately, they would select different features of the same libraries, which would be compiled
# twice.
logged emulator cargo build --release --locked --offline -p zodiac-live -p zodiac-python
logged emulator uv build --quiet --wheel --no-build-isolation --python "$venv/bin/python" \
    --out-dir "$state/wheels" python
logged emulator uv pip install --python "$venv/bin/python" --no-deps --reinstall "$state"/wheels/*.whl
ln -sfn "$emulator" "$venv/bin/zodiac-fx"
remember emulator "$key"
