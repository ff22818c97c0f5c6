# shellcheck shell=bash
# What bundle.sh gathered in prebuilt/, seen by the steps of the set-up. Sourced by them.
# shellcheck disable=SC2154 # prebuilt is of environment.sh

# prebuilt_emulator: is there a built emulator for just these sources?
prebuilt_emulator() {
    [ -x "$prebuilt/zodiac-fx" ] && [ "$(cat "$prebuilt/emulator.key" 2>/dev/null)" = "$(fingerprint switch-emulator)" ]
}

# Packages come from there alone, if they are there: the machine may have no network.
if [ -d "$prebuilt/wheels" ]; then
    export UV_OFFLINE=1 UV_NO_INDEX=1 UV_FIND_LINKS="$prebuilt/wheels"
fi
