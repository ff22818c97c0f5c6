# shellcheck shell=bash
# shellcheck disable=SC2034 # variables unused here are used by the scripts that source this file
# Where the tools and all generated files are. Sourced by the set-up steps and by setup/with-tools; changes nothing on
# the machine.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
# Everything generated goes to one folder: this one, or LOKO_BUILD if this one is to stay unchanged.
readonly build="${LOKO_BUILD:-$root}"
if [[ $build != /* ]]; then
    printf 'setup: LOKO_BUILD=%s: give an absolute path, such as %s\n' "$build" "$PWD/$build" >&2
    exit 2
fi
readonly venv="$build/.venv" state="$build/.setup" clients="$build/.clients"
prebuilt="$root/prebuilt" # shipped with the repository; otherwise collected in the build folder
[ -d "$prebuilt" ] || prebuilt="$build/prebuilt"
readonly prebuilt
if [ "$build" = "$root" ]; then
    target="${CARGO_TARGET_DIR:-$root/switch-emulator/target}"
else
    target="${CARGO_TARGET_DIR:-$build/target}"
    export CARGO_TARGET_DIR="$target"
    export PYTHONPYCACHEPREFIX="$build/.cache/python" HYPOTHESIS_STORAGE_DIRECTORY="$build/.cache/hypothesis"
    export MYPY_CACHE_DIR="$build/.cache/mypy" RUFF_CACHE_DIR="$build/.cache/ruff"
    export PYTEST_ADDOPTS="-o 'cache_dir=$build/.cache/pytest' ${PYTEST_ADDOPTS:-}"
fi
readonly emulator="$target/release/zodiac-fx" shipped="$target/dist"
readonly rust_minimum=1.85 # rust-version in switch-emulator/Cargo.toml
readonly uv_minimum=0.5    # the first with `managed = false` and --require-hashes as used here

# at_least HAVE NEED: is version HAVE at least NEED?
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# rust_in FOLDER: does FOLDER contain recent enough versions of cargo and rustc?
rust_in() {
    [ -x "$1/cargo" ] && [ -x "$1/rustc" ] || return 1
    local version
    version=$("$1/rustc" --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [ -n "$version" ] && at_least "$version" "$rust_minimum"
}

# find_rust: print the folder of the first tool-chain that is recent enough.
find_rust() {
    local folder
    while IFS= read -r folder; do
        if rust_in "$folder"; then
            printf '%s\n' "$folder"
            return
        fi
    done < <(
        { type -ap cargo || true; } | sed 's|/cargo$||'
        printf '%s\n' "${CARGO_HOME:-$HOME/.cargo}/bin"
        printf '%s\n' /usr/lib/rust-1.*/bin | sort -Vr
    )
    return 1
}

# find_uv: print the path of the first uv that is recent enough.
find_uv() {
    local program version
    while IFS= read -r program; do
        [ -x "$program" ] || continue
        version=$("$program" --version 2>/dev/null | cut -d ' ' -f 2) || continue
        if [ -n "$version" ] && at_least "$version" "$uv_minimum"; then
            printf '%s\n' "$program"
            return
        fi
    done < <(
        type -ap uv || true
        printf '%s\n' /usr/local/bin/uv "$HOME/.local/bin/uv"
    )
    return 1
}

# use_tools: put the tool-chain, uv and the environment on PATH, if they exist.
use_tools() {
    local folder
    PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
    if folder=$(find_uv); then PATH="$(dirname "$folder"):$PATH"; fi
    if folder=$(find_rust); then PATH="$folder:$PATH"; fi
    PATH="$venv/bin:$PATH"
    export PATH VIRTUAL_ENV="$venv"
    # If set, every program would compile all its imports at each start, which would take most of the start-up time.
    unset PYTHONDONTWRITEBYTECODE
    # Ansible refuses every other encoding, and any locale that is not generated. C.UTF-8 is always there.
    [ "$(locale charmap 2>/dev/null)" = UTF-8 ] || export LC_ALL=C.UTF-8
    # One interpreter for every build of the Python module, so that cargo never builds it twice.
    export PYO3_PYTHON="$venv/bin/python"
}

# lent: is this root, in a folder of another user (by sudo, or in a container)?
lent() {
    [ "$(id -u)" -eq 0 ] && [ "$(stat -c %u "$build" 2>/dev/null || echo 0)" -ne 0 ]
}

# give_back: give what root created in another user's folder to that user, who could not change or remove it otherwise.
give_back() {
    if lent; then find "$build" -xdev -uid 0 -exec chown -h --reference="$build" {} +; fi
}
if lent; then export UV_LINK_MODE=copy; fi # hard links to root's own cache would change owner, too

export CARGO_NET_RETRY="${CARGO_NET_RETRY:-5}"
export UV_HTTP_RETRIES="${UV_HTTP_RETRIES:-5}" UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-180}"
# Trust the machine's certificates, like apt, pip and cargo; by default uv knows only its own.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}" UV_NATIVE_TLS="${UV_NATIVE_TLS:-true}"
