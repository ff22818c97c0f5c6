# shellcheck shell=bash
# How the set-up steps use what bundle.sh collected in prebuilt/. Sourced by them.
# shellcheck disable=SC2154 # prebuilt is of environment.sh

# Each item has a key file that says what it was made from and for which machines. The key is written last and removed
# first, so incomplete items have none. Items whose key does not match this machine are not used.
readonly wheels_key_file="$prebuilt/wheels.key" emulator_key_file="$prebuilt/emulator.key"

# platform: what must be the same for a build to work on another machine: architecture, release, Python.
platform() {
    local python
    python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || python=none
    # shellcheck disable=SC1091 # of each machine
    (. /etc/os-release && printf '%s %s-%s Python-%s' "$(uname -m)" "$ID" "${VERSION_ID:-${VERSION_CODENAME:-rolling}}" "$python")
}

wheels_key() {
    printf '%s %s' "$(fingerprint requirements.lock setup/requirements-bundle.lock)" "$(platform)"
}

emulator_key() {
    printf '%s %s' "$(fingerprint switch-emulator)" "$(platform)"
}

# prebuilt_emulator: is there an emulator built from exactly these sources for this machine?
prebuilt_emulator() {
    [ -x "$prebuilt/zodiac-fx" ] && [ "$(cat "$emulator_key_file" 2>/dev/null)" = "$(emulator_key)" ]
}

# prebuilt_wheels: are all packages of exactly this requirements.lock there, for this machine?
prebuilt_wheels() {
    [ -d "$prebuilt/wheels" ] && [ "$(cat "$wheels_key_file" 2>/dev/null)" = "$(wheels_key)" ]
}

# tell_unused: report packages that are not used, and why.
tell_unused() {
    local theirs
    if [ ! -d "$prebuilt/wheels" ] || prebuilt_wheels; then return; fi
    if ! theirs=$(cat "$wheels_key_file" 2>/dev/null); then
        say "note: ${prebuilt#"$root/"}/wheels is unfinished and not used; 'make bundle' makes it anew"
    elif [ "${theirs#* }" != "$(platform)" ]; then
        say "note: ${prebuilt#"$root/"}/wheels is for another machine (${theirs#* }; this is $(platform)) and not used"
    else
        say "note: ${prebuilt#"$root/"}/wheels is for another requirements.lock and not used; 'make bundle' makes it anew"
    fi >&2
}

# If packages are there, use no others: the machine may have no network.
if prebuilt_wheels; then
    export UV_OFFLINE=1 UV_NO_INDEX=1 UV_FIND_LINKS="$prebuilt/wheels"
fi
