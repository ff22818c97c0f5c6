#!/usr/bin/env bash
# bundle.sh: collect everything that set-up would build or fetch in prebuilt/. A machine with a copy of this folder,
# including prebuilt/, is then set up without a compiler or network, if its Debian packages are installed. It must have
# the same release, architecture and Python; otherwise set-up reports that it does not use the bundle.
. "$(dirname "$0")/step.sh"
alone
. "$root/setup/prebuilt.sh"
use_tools

readonly tools="$state/bundle"
begin bundle
mkdir -p "$prebuilt"
if ! prebuilt_wheels; then
    say "fetching every package of requirements.lock"
    rm -rf "$wheels_key_file" "$prebuilt/wheels"
    logged bundle uv venv --quiet --clear --python /usr/bin/python3 "$tools"
    logged bundle retried uv pip install --python "$tools/bin/python" --require-hashes \
        -r "$root/setup/requirements-bundle.lock"
    # The build tools of source packages are pinned, too. They come from that environment and are part of the bundle.
    for lock in requirements.lock setup/requirements-bundle.lock; do
        logged bundle retried "$tools/bin/python" -m pip download --quiet --require-hashes --no-build-isolation \
            --dest "$prebuilt/wheels" -r "$root/$lock"
    done
    wheels_key >"$wheels_key_file"
fi
rm -rf "$emulator_key_file" "$prebuilt/module"
mkdir "$prebuilt/module"
logged bundle install -m 755 "$emulator" "$(find_uv)" "$prebuilt"
logged bundle cp "$state"/wheels/*.whl "$prebuilt/module"
emulator_key >"$emulator_key_file"
say "$(du -sh --exclude="*.box" "$prebuilt/" | cut -f 1) in ${prebuilt#"$root/"}/"
