#!/usr/bin/env bash
# For the tests only: controllers that others wrote, in .clients. Ryu and an early os-ken get an environment of their own,
# because they need other packages than the testbed. What cannot be had here is said, and its tests are skipped.
. "$(dirname "$0")/step.sh"
use_tools

readonly tests=tests/clients
readonly system_python=/usr/bin/python3

# Unpacked, not installed: the package's installation makes keys and starts a controller on port 6653 as a service.
testcontroller() {
    local program="$clients/openvswitch/usr/bin/ovs-testcontroller"
    if command -v ovs-testcontroller >/dev/null || [ -x "$program" ]; then return; fi
    begin testcontroller
    if ! "$root/setup/apt-install.sh" testcontroller openvswitch-common; then
        say "note: no package openvswitch-common here; the tests with ovs-testcontroller are skipped"
        return
    fi
    say "unpacking ovs-testcontroller in ${clients#"$root/"}"
    rm -rf "$clients/openvswitch"
    mkdir -p "$clients/openvswitch"
    cd "$clients/openvswitch"
    logged testcontroller retried apt-get -q download openvswitch-testcontroller
    logged testcontroller dpkg-deb --extract openvswitch-testcontroller_*.deb .
    rm -f openvswitch-testcontroller_*.deb
    cd "$root"
}

# Ryu's own set-up program needs an early setuptools, which needs a Python before 3.12.
python_controllers() {
    local python="$clients/python/bin/python" key
    if ! "$system_python" -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 12))'; then
        say "note: Ryu 4.34 needs Python 3.9 to 3.11, and $system_python is another; the tests with it are skipped"
        return
    fi
    key=$(fingerprint $tests/requirements-build.lock $tests/requirements.lock)-$("$system_python" --version | tr ' ' '-')
    if done_before clients "$key" && "$python" -c '' 2>/dev/null; then return; fi
    changing "installing Ryu and an early os-ken in ${clients#"$root/"}"
    begin clients
    logged clients uv venv --quiet --clear --python "$system_python" "$clients/python"
    logged clients retried uv pip install --python "$python" --require-hashes -r $tests/requirements-build.lock
    logged clients retried uv pip install --python "$python" --require-hashes --no-build-isolation -r $tests/requirements.lock
    remember clients "$key"
}

cd "$root"
testcontroller
python_controllers
