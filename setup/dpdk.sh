#!/usr/bin/env bash
# `make dpdk`, not part of set-up: Open vSwitch with DPDK, and DPDK's driver for packet sockets. The program is
# installed beside `ovs-vswitchd`, whose alternative stays unchanged; labs start it by its own path. Huge pages and
# network cards are not touched.
. "$(dirname "$0")/step.sh"
alone

readonly program=/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk
readonly drivers="net-af-packet mempool-ring bus-vdev"

# lacking: is the program or one of its drivers missing?
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
"$root/setup/openvswitch.sh" # without starting its service
if ! apt-cache show openvswitch-switch-dpdk >/dev/null 2>&1; then
    logged dpdk retried as_root apt-get -q update
fi
# The drivers must belong to the same DPDK; its version is part of their packages' names.
number=$(apt-cache depends openvswitch-switch-dpdk 2>/dev/null | sed -n 's/^ *Depends: librte-eal\([0-9.a-z]*\)$/\1/p')
[ -n "$number" ] || fail "no package openvswitch-switch-dpdk here: Debian has it, and Ubuntu in its component universe"
packages=(openvswitch-switch-dpdk)
for driver in $drivers; do packages+=("librte-$driver$number"); done
chosen=$(readlink /etc/alternatives/ovs-vswitchd || true)
"$root/setup/apt-install.sh" dpdk "${packages[@]}"
# Keep the alternative that was chosen before, whatever the packages prefer.
if [ -n "$chosen" ] && [ "$(readlink /etc/alternatives/ovs-vswitchd)" != "$chosen" ]; then
    logged dpdk as_root update-alternatives --set ovs-vswitchd "$chosen"
fi
# Its service would assign the cards in /etc/dpdk/interfaces to DPDK; nothing here needs it.
logged dpdk as_root update-rc.d dpdk disable
if lacking; then fail "openvswitch-switch-dpdk is installed, but not where it is expected: $program"; fi
