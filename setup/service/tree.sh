# shellcheck shell=bash
# shellcheck disable=SC2154 # build and root are of environment.sh
# Sourced by the two steps that pack the service: the package with all that it needs, as it lies below / elsewhere.

readonly tree="$build/dist/service-root"
system_python=/usr/bin/python3
readonly system_python

# make_tree: $tree/opt/loko, a Python environment of the wheel and its pinned requirements, which may be moved.
make_tree() {
    local version key
    version=$("$system_python" --version | tr ' ' '-')
    key=$(fingerprint controller testbed labs switch-emulator pyproject.toml setup/requirements-service.lock setup/service)-$version
    if [ -d "$tree/opt/loko" ] && done_before service-root "$key"; then return; fi
    "$root/setup/wheel.sh"
    room 1500 "$build"
    say "gathering what the service needs"
    begin service-root
    rm -rf "$tree"
    logged service-root uv venv --quiet --relocatable --python "$system_python" "$tree/opt/loko"
    # Compiled, since who runs the service may not write there: each start would compile all that it imports.
    logged service-root retried uv pip install --compile-bytecode --python "$tree/opt/loko/bin/python" --require-hashes \
        --build-constraint "$root/requirements.lock" -r "$root/setup/requirements-service.lock"
    logged service-root uv pip install --compile-bytecode --python "$tree/opt/loko/bin/python" --no-deps \
        "$build"/dist/loko_testbed-*.whl
    mkdir -p "$tree/usr/bin"
    ln -s /opt/loko/bin/loko /opt/loko/bin/zodiac-fx "$tree/usr/bin"
    remember service-root "$key"
}
