#!/usr/bin/env bash
# `make dpdk`, not part of the set-up: Open vSwitch with DPDK, and DPDK's driver for packet sockets. It is a program beside
# `ovs-vswitchd`, whose alternative stays as it is; labs start it by its own path. Huge pages and network cards are not touched.
. "$(dirname "$0")/step.sh"
alone

readonly program=/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk
readonly drivers="net-af-packet mempool-ring bus-vdev"

# lacking: whether the program or one of its drivers is not there.
lacking() {
    local driver
    [ -x "$program" ] || return 0
    for driver in $drivers; do
        compgen -G "/usr/lib/*/dpdk/pmds-*/librte_${driver//-/_}.so*" >/dev/null || return 0
    done
    return 1
}

lacking || exit 0
changing "installing openvswitch-switch-dpdk and DPDK's drivers for packet sockets (80 MB)"
room 300 /usr
root_for "installing openvswitch-switch-dpdk"
begin dpdk
"$root/setup/openvswitch.sh" # without its service
if ! apt-cache show openvswitch-switch-dpdk >/dev/null 2>&1; then
    logged dpdk retried as_root apt-get -q update
fi
# The drivers must be of the same DPDK, whose number is in their packages' names.
number=$(apt-cache depends openvswitch-switch-dpdk 2>/dev/null | sed -n 's/^ *Depends: librte-eal\([0-9.a-z]*\)$/\1/p')
[ -n "$number" ] || fail "no package openvswitch-switch-dpdk here: Debian has it, and Ubuntu in its component universe"
packages=(openvswitch-switch-dpdk)
for driver in $drivers; do packages+=("librte-$driver$number"); done
chosen=$(readlink /etc/alternatives/ovs-vswitchd || true)
"$root/setup/apt-install.sh" dpdk "${packages[@]}"
# What was chosen before stays so, whatever the packages prefer.
if [ -n "$chosen" ] && [ "$(readlink /etc/alternatives/ovs-vswitchd)" != "$chosen" ]; then
    logged dpdk as_root update-alternatives --set ovs-vswitchd "$chosen"
fi
# Its service would give cards to DPDK that /etc/dpdk/interfaces names; nothing here needs it.
logged dpdk as_root update-rc.d dpdk disable
if lacking; then fail "openvswitch-switch-dpdk is installed, but not where it is expected: $program"; fi
