#!/usr/bin/env bash
# bundle.sh: everything that set-up would build or fetch, gathered in prebuilt/, so that a machine that gets this folder
# with prebuilt/ in it is set up without a compiler and without a network (its Debian packages must be there). It must have
# the same Debian and the same architecture.
. "$(dirname "$0")/step.sh"
use_tools

readonly tools="$state/bundle"
rm -f "$state/bundle.log"
mkdir -p "$prebuilt/wheels"
key=$(fingerprint requirements.lock)
if ! done_before bundle-wheels "$key"; then
    say "fetching every package of requirements.lock"
    logged bundle uv venv --quiet --clear --python /usr/bin/python3 "$tools"
    logged bundle retried uv pip install --python "$tools/bin/python" pip
    logged bundle retried "$tools/bin/python" -m pip download --quiet --require-hashes \
        --dest "$prebuilt/wheels" -r "$root/requirements.lock"
    # What comes as source is built there, and that needs these.
    logged bundle retried "$tools/bin/python" -m pip download --quiet --dest "$prebuilt/wheels" setuptools wheel
    remember bundle-wheels "$key"
fi
install -m 755 "$emulator" "$(find_uv)" "$prebuilt"
rm -rf "$prebuilt"/module
mkdir "$prebuilt/module"
cp "$state"/wheels/*.whl "$prebuilt/module"
fingerprint switch-emulator >"$prebuilt/emulator.key"
say "$(du -sh --exclude="*.box" "$prebuilt/" | cut -f 1) in ${prebuilt#"$root/"}/"
