#!/usr/bin/env bash
# vagrant-smoke.sh: start the machine of the Vagrantfile, provision it, compute a figure on it, provision it again, send
# traffic in real time with the emulator's processes and with containers, and destroy the machine. Prints the time of
# each step. LOKO_BOX: use another box than the one that `make vagrant-box` builds.
. "$(dirname "$0")/step.sh"

readonly box="$prebuilt/loko-bookworm.box" log="$state/vagrant-smoke.log"
export LOKO_BOX="${LOKO_BOX:-loko/bookworm}" VAGRANT_DEFAULT_PROVIDER=libvirt

command -v vagrant >/dev/null ||
    fail "Vagrant is missing: apt-get install vagrant vagrant-libvirt libvirt-daemon-system qemu-system-x86 dnsmasq-base qemu-utils rsync"
[ "$(vagrant plugin list 2>/dev/null | grep -c '^vagrant-libvirt')" -gt 0 ] ||
    fail "Vagrant has no provider libvirt: apt-get install vagrant-libvirt"
[ -S /run/libvirt/libvirt-sock ] ||
    fail "libvirt does not run: start it (systemctl start libvirtd; without systemd: virtlogd -d; libvirtd -d)"

# step WHAT COMMAND …: run it with its output in the log, and print how long it took.
step() {
    local what=$1 began=$SECONDS
    shift
    printf '\n$ %s\n' "$*" >>"$log"
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        tail -n 25 "$log" >&2
        fail "$what failed after $((SECONDS - began)) s; the machine is left to be looked at ('vagrant ssh', 'vagrant destroy -f')"
    fi
    say "$what: $((SECONDS - began)) s"
}

machine() {
    "$root/setup/with-tools" vagrant --no-tty "$@"
}

# unchanged: print the outcome of the playbook, and fail if it changed anything.
unchanged() {
    local recap
    recap=$(grep -aE 'changed=[0-9]+' "$log" | tail -n 1)
    say "$recap"
    [[ $recap == *changed=0\ * ]] || fail 'a run of the playbook that had nothing to do changed something'
}

cd "$root"
: >"$log"
if [ "$LOKO_BOX" = loko/bookworm ] && ! vagrant box list | grep -q "^$LOKO_BOX "; then
    [ -f "$box" ] || "$root/setup/vagrant-box.sh"
    step 'box' vagrant --no-tty box add --name "$LOKO_BOX" "$box"
fi
[ -x "$prebuilt/containerlab" ] || "$root/setup/containerlab.sh"
step 'start' machine up --no-provision
step 'provision, with the smoke evaluation' machine provision
step 'a figure, as the README asks for it' machine ssh -c 'loko evaluate fig17a --quick --out results/again'
step 'provision again' machine provision --provision-with testbed
unchanged
LOKO_ANSIBLE=guest step 'provision from within' machine provision --provision-with testbed
unchanged
readonly live='sudo loko evaluate fig17a --mode live --quick --points admitted --runs 1 --seconds 1 --sender simple'
step 'the figure in real time' machine ssh -c "$live --out results/live"
# Our own box has Docker, the public one does not.
step 'Docker' machine ssh -c 'command -v docker >/dev/null || /vagrant/setup/apt-install.sh images docker.io apparmor iptables'
step 'images and program for containers' machine ssh -c '/vagrant/setup/images.sh && /vagrant/setup/containerlab.sh'
step 'the figure in containers' machine ssh -c "$live --builder containerlab --out results/containers"
step 'destroy' machine destroy -f
