#!/usr/bin/env bash
# Step 2: Open vSwitch for the coarse stand-in. Each lab starts its own instance, so the package's service is neither
# started nor enabled. If Open vSwitch is already installed, nothing is changed.
. "$(dirname "$0")/step.sh"
alone

readonly policy=/usr/sbin/policy-rc.d # Debian's packages ask this program before they start a service
readonly mark='# loko-testbed: no service is started while its set-up installs packages'

# allow_services: remove the policy file if this set-up or one that was killed wrote it, unless another folder's set-up
# still needs it.
allow_services() {
    local writer
    grep -qsF "$mark" "$policy" || return 0
    writer=$(sed -n 's/^# by process //p' "$policy")
    if [ -n "$writer" ] && [ "$writer" != $$ ] && [ -d "/proc/$writer" ]; then return; fi
    as_root rm -f "$policy"
}

if ! $checking; then allow_services; fi # clean up after a set-up that was killed
readonly unfinished="$state/openvswitch.unfinished"
[ -e "$unfinished" ] || [ "$(dpkg-query -W -f '${db:Status-Status}' openvswitch-switch 2>/dev/null)" != installed ] || exit 0
changing "installing openvswitch-switch, without its service"
room 200 /usr
root_for "installing openvswitch-switch"
begin openvswitch
touch "$unfinished" # removed once the service is disabled; never created for a package that others installed
if [ ! -e "$policy" ]; then
    trap 'allow_services; give_back' EXIT
    printf '#!/bin/sh\n%s\n# by process %s\nexit 101\n' "$mark" $$ | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
fi
"$root/setup/apt-install.sh" openvswitch openvswitch-switch
logged openvswitch as_root update-rc.d openvswitch-switch disable
rm -f "$unfinished"
