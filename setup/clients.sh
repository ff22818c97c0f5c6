#!/usr/bin/env bash
# For the tests only, in .clients: third-party controllers with their own tests, a switch tester, a client of the
# service, a program for signatures, readers of other programs' labs, and the oldest supported Ansible. They have
# separate environments where they need other packages than the testbed. tshark, which dissects captures, is installed on
# the machine. A note says what is not available here, and its tests are skipped.
. "$(dirname "$0")/step.sh"
alone
use_tools

readonly tests=tests/clients
readonly system_python=/usr/bin/python3
readonly oftest_source=${LOKO_OFTEST:-https://github.com/floodlight/oftest}
readonly oftest_commit=0c20d87bc4d97c5c410e8cdd3be83dea214f5085
readonly pox_source=${LOKO_POX:-https://github.com/noxrepo/pox}
readonly pox_commit=5f82461e01f8822bd7336603b361bff4ffbd2380 # 0.7.0, branch gar-experimental
readonly faucet_source=${LOKO_FAUCET:-https://github.com/faucetsdn/faucet}
readonly faucet_commit=29b167bd92b35431ff678e1e3677823405de7636 # 1.10.12

# unpacked FOLDER PROGRAM PACKAGE [NEEDED …]: a program of the distribution, unpacked, because installing its package would
# start a service. The packages that it needs are installed.
unpacked() {
    local home="$clients/$1" program=$2 package=$3 name=${2##*/}
    shift 3
    if command -v "$name" >/dev/null || [ -x "$home/$program" ]; then return; fi
    begin "$name"
    if ! "$root/setup/apt-install.sh" "$name" "$@"; then
        say "note: no package $* here; the tests with $name are skipped"
        return
    fi
    say "unpacking $name in ${clients#"$root/"}"
    rm -rf "$home"
    mkdir -p "$home"
    cd "$home"
    logged "$name" retried apt-get -q download "$package"
    logged "$name" dpkg-deb --extract "$package"_*.deb .
    rm -f "$package"_*.deb
    cd "$root"
}

# Its package asks whether all users may capture: without terminal the answer is no.
dissector() {
    if command -v tshark >/dev/null; then return; fi
    changing "installing tshark"
    begin tshark
    "$root/setup/apt-install.sh" tshark tshark || say "note: no package tshark here; the tests that dissect captures are skipped"
}

# lacks_python LOWEST ABOVE WHAT: is the system's Python none of 3.LOWEST to 3.ABOVE - 1? If so, say what is skipped.
lacks_python() {
    if "$system_python" -c "import sys; sys.exit(not (3, $1) <= sys.version_info < (3, $2))"; then return 1; fi
    say "note: $3, and $system_python is another; the tests with it are skipped"
}

# built_here STEP FOLDER WHAT LOCK: create an environment for packages that, like Ryu, are built from source.
built_here() {
    local step=$1 home="$clients/$2" what=$3 lock=$4 python="$clients/$2/bin/python" key
    key=$(fingerprint $tests/requirements-build.lock "$lock")-$("$system_python" --version | tr ' ' '-')
    if done_before "$step" "$key" && "$python" -c '' 2>/dev/null; then return; fi
    changing "installing $what in ${clients#"$root/"}"
    begin "$step"
    logged "$step" uv venv --quiet --clear --python "$system_python" "$home"
    logged "$step" retried uv pip install --python "$python" --require-hashes -r $tests/requirements-build.lock
    logged "$step" retried uv pip install --python "$python" --require-hashes --no-build-isolation -r "$lock"
    remember "$step" "$key"
}

# Ryu's setup.py needs an old setuptools, which needs a Python before 3.12.
python_controllers() {
    if lacks_python 9 12 "Ryu 4.34 needs Python 3.9 to 3.11"; then return; fi
    built_here clients python "Ryu and an early os-ken" $tests/requirements.lock
}

# In a separate environment, because it needs another os-ken.
faucet() {
    if lacks_python 10 12 "Faucet is pinned for Python 3.10 and 3.11"; then return; fi
    built_here faucet faucet Faucet $tests/faucet.lock
}

# Faucet's own tests, the modules they import, and the programs they call. Mininet comes from the distribution.
faucet_suite() {
    local home="$clients/faucet-suite" python="$clients/faucet/bin/python" key
    if ! "$python" -c '' 2>/dev/null; then return; fi
    key=$faucet_commit-$(fingerprint $tests/faucet-suite.lock)
    if done_before faucet-suite "$key" && [ -d "$home/libraries/mininet" ]; then return; fi
    changing "installing Faucet's own tests in ${clients#"$root/"}"
    begin faucet-suite
    rm -rf "$home"
    mkdir -p "$home/packages" "$home/programs"
    if ! {
        timeout 120 git clone --quiet --no-checkout "$faucet_source" "$home/source" &&
            git -C "$home/source" checkout --quiet "$faucet_commit" &&
            timeout 300 uv pip install --python "$python" --require-hashes --target "$home/libraries" \
                --build-constraint $tests/requirements-build.lock -r $tests/faucet-suite.lock &&
            cd "$home/packages" && retried apt-get -q download fping netcat-openbsd &&
            for package in *.deb; do dpkg-deb --extract "$package" . || exit 1; done &&
            ln -s /usr/lib/python3/dist-packages/mininet "$home/libraries/mininet" &&
            ln -s ../packages/usr/bin/fping "$home/programs/fping" &&
            ln -s ../packages/bin/nc.openbsd "$home/programs/nc"
    } >>"$state/faucet-suite.log" 2>&1 </dev/null; then
        cd "$root"
        say "note: Faucet's tests of $faucet_source, or what they need, cannot be had here; they are skipped (LOKO_FAUCET=/a/clone names another source)"
        rm -rf "$home"
        return
    fi
    cd "$root"
    remember faucet-suite "$key"
}

# ready_made STEP WHAT: create an environment for packages of which there are wheels, as $tests/STEP.lock pins them.
ready_made() {
    local step=$1 what=$2 python="$clients/$1/bin/python" key
    key=$(fingerprint "$tests/$step.lock")-$("$venv/bin/python" --version | tr ' ' '-')
    if done_before "$step" "$key" && "$python" -c '' 2>/dev/null; then return; fi
    changing "installing $what in ${clients#"$root/"}"
    begin "$step"
    logged "$step" uv venv --quiet --clear --python "$venv/bin/python" "$clients/$step"
    logged "$step" retried uv pip install --python "$python" --require-hashes --only-binary :all: -r "$tests/$step.lock"
    remember "$step" "$key"
}

# The oldest supported Ansible, that of Debian 12, which does not run on newer versions of Python either.
oldest_ansible() {
    local lock=setup/requirements-ansible.lock python="$clients/oldest-ansible/bin/python" key
    if lacks_python 9 12 "Ansible 2.14 needs Python 3.9 to 3.11"; then return; fi
    key=$(fingerprint $lock)-$("$system_python" --version | tr ' ' '-')
    if done_before oldest-ansible "$key" && "$python" -c '' 2>/dev/null; then return; fi
    changing "installing the oldest Ansible that the playbooks are for in ${clients#"$root/"}"
    begin oldest-ansible
    logged oldest-ansible uv venv --quiet --clear --python "$system_python" "$clients/oldest-ansible"
    logged oldest-ansible retried uv pip install --python "$python" --require-hashes --only-binary :all: -r "$lock"
    remember oldest-ansible "$key"
}

# python2: print the path of a working Python 2.7.
python2() {
    local python
    for python in "${LOKO_PYTHON2:-}" python2.7 pypy "$HOME"/.pyenv/versions/2.7*/bin/python2.7; do
        if python=$(command -v "$python") && "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (2, 7))' 2>/dev/null; then
            printf '%s\n' "$python"
            return
        fi
    done
    return 1
}

oftest() {
    local home="$clients/oftest" python key
    if ! python=$(python2); then
        say "note: no Python 2.7 here, which OFTest is written in; the tests with it are skipped (LOKO_PYTHON2=/its/path names one)"
        return
    fi
    key=$oftest_commit-$(fingerprint $tests/oftest.lock)-$python
    if done_before oftest "$key" && "$home/python" -c '' 2>/dev/null; then return; fi
    changing "installing OFTest in ${clients#"$root/"}"
    begin oftest
    rm -rf "$home"
    mkdir -p "$home"
    if ! {
        timeout 120 git clone --quiet --no-checkout "$oftest_source" "$home/source" &&
            git -C "$home/source" checkout --quiet "$oftest_commit" &&
            timeout 120 "$python" -m pip install --require-hashes --no-deps --target "$home/libraries" -r $tests/oftest.lock
    } >>"$state/oftest.log" 2>&1 </dev/null; then
        say "note: OFTest of $oftest_source, or its libraries, cannot be had here; its tests are skipped (LOKO_OFTEST=/a/clone names another source)"
        rm -rf "$home"
        return
    fi
    ln -s "$python" "$home/python"
    remember oftest "$key"
}

# POX has no package and needs no libraries: it runs from a clone, with the testbed's own Python.
pox() {
    local home="$clients/pox"
    if done_before pox "$pox_commit" && [ -f "$home/pox.py" ]; then return; fi
    changing "installing POX in ${clients#"$root/"}"
    begin pox
    rm -rf "$home"
    if ! {
        timeout 120 git clone --quiet --no-checkout "$pox_source" "$home" &&
            git -C "$home" checkout --quiet "$pox_commit"
    } >>"$state/pox.log" 2>&1 </dev/null; then
        say "note: POX of $pox_source cannot be had here; its tests are skipped (LOKO_POX=/a/clone names another source)"
        rm -rf "$home"
        return
    fi
    remember pox "$pox_commit"
}

cd "$root"
unpacked openvswitch usr/bin/ovs-testcontroller openvswitch-testcontroller openvswitch-common
unpacked nginx usr/sbin/nginx nginx libpcre2-8-0
unpacked minisign usr/bin/minisign minisign libsodium23
dissector
python_controllers
faucet
faucet_suite
ready_made schemathesis Schemathesis
ready_made topologies "netlab and Kathará"
oldest_ansible
oftest
pox
