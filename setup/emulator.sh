#!/usr/bin/env bash
# Step 6: the program zodiac-fx and the Python module switch_emulator, from switch-emulator/.
. "$(dirname "$0")/step.sh"
. "$root/setup/prebuilt.sh"
use_tools

# importable: is the module in the Python environment? That may have been made anew since.
importable() {
    "$venv/bin/python" -c 'import switch_emulator' 2>/dev/null
}

if ! find_rust >/dev/null && prebuilt_emulator; then
    key=prebuilt-$(cat "$prebuilt/emulator.key")
    if done_before emulator "$key" && importable; then exit 0; fi
    changing "installing the emulator that was built elsewhere"
    begin emulator
    logged emulator install -D -m 755 "$prebuilt/zodiac-fx" "$root/switch-emulator/target/release/zodiac-fx"
    logged emulator uv pip install --python "$venv/bin/python" --no-deps --reinstall "$prebuilt"/module/*.whl
    remember emulator "$key"
    exit 0
fi

compiler=$(rustc --version 2>/dev/null | tr ' ' '-') || compiler=none # with --check it may be missing
key=$(fingerprint switch-emulator)-$compiler
if done_before emulator "$key" && [ -x "$root/switch-emulator/target/release/zodiac-fx" ] && importable; then exit 0; fi

changing "building the emulator (Rust, release)"
if [ -d "$root/switch-emulator/target" ]; then room 500 "$root"; else room 1500 "$root"; fi
begin emulator
rm -rf "$state/wheels"
cd "$root/switch-emulator"
logged emulator retried cargo fetch --locked
# Both at once: apart, they would ask other features of the same libraries, and these be compiled twice.
logged emulator cargo build --release --locked --offline -p zodiac-live -p zodiac-python
logged emulator uv build --quiet --wheel --no-build-isolation --python "$venv/bin/python" \
    --out-dir "$state/wheels" python
logged emulator uv pip install --python "$venv/bin/python" --no-deps --reinstall "$state"/wheels/*.whl
remember emulator "$key"
