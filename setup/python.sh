#!/usr/bin/env bash
# Step 5: .venv with exactly the packages of requirements.lock, and this project.
. "$(dirname "$0")/step.sh"
alone
. "$root/setup/prebuilt.sh"
use_tools

readonly system_python=/usr/bin/python3 # Mininet's modules belong to the distribution's interpreter

if $checking && [ ! -x "$system_python" ]; then changing "installing the Python environment ${venv#"$root/"}"; fi
"$system_python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$system_python is $("$system_python" --version 2>&1), and the testbed needs 3.11 (Debian 12, Ubuntu 24.04)."

# works: does the environment work, and was it created at this path? If it was moved or copied with the repository, its
# programs still refer to the old path.
works() {
    "$venv/bin/python" -c '' 2>/dev/null && [ "$(cat "$venv/made-for" 2>/dev/null)" = "$venv $root" ]
}

key=$(fingerprint requirements.lock pyproject.toml)-$("$system_python" --version | tr ' ' '-')
if done_before python "$key" && [ -x "$venv/bin/loko" ] && works; then exit 0; fi

changing "installing the Python environment ${venv#"$root/"}"
if [ -d "$venv" ]; then room 300 "$build"; else room 1200 "$build"; fi
begin python
tell_unused
if ! works; then
    # System site packages are needed because Mininet is a distribution package.
    logged python uv venv --quiet --clear --python "$system_python" --system-site-packages "$venv"
    printf '%s\n' "$venv $root" >"$venv/made-for"
fi
# Source packages are built by packages of the same list, whose hashes are checked, too.
logged python retried uv pip install --python "$venv/bin/python" --require-hashes \
    --build-constraint "$root/requirements.lock" -r "$root/requirements.lock"
# Without isolation, so that the locked build back end is used.
logged python uv pip install --python "$venv/bin/python" --no-build-isolation --no-deps -e "$root"
remember python "$key"
