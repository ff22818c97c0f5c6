#!/usr/bin/env bash
# vagrant-box.sh [BOX]: build a Vagrant box for libvirt with Debian and every package that `make setup` would install.
# It is built only from packages: no image is pulled, nothing is mounted, no virtual machine is started. Needs root.
. "$(dirname "$0")/step.sh"
alone

box=$(readlink -m "${1:-$prebuilt/loko-bookworm.box}")
readonly box suite=bookworm gigabytes=20 boot_sectors=196608
readonly needed='mmdebstrap debian-archive-keyring syslinux syslinux-common mtools dosfstools fdisk e2fsprogs qemu-utils'
readonly sector=512 first=2048 # sectors before the boot partition
work=$(mktemp -d "${TMPDIR:-/var/tmp}/loko-box.XXXXXX")
readonly work system="$work/system" disk="$work/disk.raw"
trap 'rm -rf "$work"; give_back' EXIT

[ "$(id -u)" -eq 0 ] || fail "a box is built as root, for the files' owners: sudo make vagrant-box"
rm -f "$state/vagrant-box.log"

packages() {
    printf '%s,' systemd-sysv udev dbus kmod init linux-image-cloud-amd64 initramfs-tools ifupdown isc-dhcp-client \
        openssh-server sudo python3-apt rsync less iptables openvswitch-switch docker.io apparmor
    sed -E 's/#.*//; /^\[/d; s/[[:space:]]//g; /^$/d' "$root/setup/packages.txt" | paste -sd , -
}

debian() {
    say "fetching Debian $suite with the testbed's packages"
    # shellcheck disable=SC2016 # $1 is mmdebstrap's
    logged vagrant-box mmdebstrap --variant=minbase --include="$(packages)" \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"' \
        --essential-hook='echo MODULES=list >"$1/etc/initramfs-tools/conf.d/modules"' \
        --essential-hook='printf "virtio_pci\nvirtio_blk\nvirtio_scsi\nsd_mod\next4\n" >"$1/etc/initramfs-tools/modules"' \
        "$suite" "$system"
}

# What Vagrant expects in a box: its user, its well-known key (replaced at the first start), ssh, sudo.
vagrant_user() {
    local key
    key=$(find /usr/share -path '*vagrant*' -name vagrant.pub -print -quit)
    [ -n "$key" ] || fail "Vagrant's public key is not there: apt-get install vagrant"
    chroot "$system" useradd --create-home --shell /bin/bash --user-group vagrant
    install -d -m 700 "$system/home/vagrant/.ssh"
    install -m 600 "$key" "$system/home/vagrant/.ssh/authorized_keys"
    chroot "$system" chown -R vagrant:vagrant /home/vagrant
    install -m 440 /dev/stdin "$system/etc/sudoers.d/vagrant" <<<'vagrant ALL=(ALL) NOPASSWD: ALL'
    printf 'UseDNS no\nPasswordAuthentication no\n' >"$system/etc/ssh/sshd_config.d/vagrant.conf"
    rm -f "$system"/etc/ssh/ssh_host_*
}

machine() {
    echo loko >"$system/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 loko\n' >"$system/etc/hosts"
    printf 'auto lo\niface lo inet loopback\nallow-hotplug eth0\nauto eth0\niface eth0 inet dhcp\n' \
        >"$system/etc/network/interfaces"
    printf 'LABEL=root / ext4 errors=remount-ro,noatime 0 1\n' >"$system/etc/fstab"
    cat >"$system/etc/systemd/system/ssh-host-keys.service" <<'UNIT'
[Unit]
Description=Make this machine's ssh host keys
Before=ssh.service
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
[Install]
WantedBy=multi-user.target
UNIT
    # apt's timers would hold its lock during provisioning; Open vSwitch is started by each lab.
    logged vagrant-box chroot "$system" systemctl enable ssh-host-keys ssh serial-getty@ttyS0
    logged vagrant-box chroot "$system" systemctl mask apt-daily.timer apt-daily-upgrade.timer man-db.timer
    logged vagrant-box chroot "$system" systemctl disable openvswitch-switch
    : >"$system/etc/machine-id"
    rm -rf "$system"/etc/resolv.conf "$system"/var/cache/apt/*.bin "$system"/var/lib/apt/lists/*
}

# A boot partition for syslinux with kernel and initial RAM disk, followed by the root file system.
disk_image() {
    local root_first=$((first + boot_sectors)) boot="$work/boot.fat"
    say "making the disk ($(du -sh "$system" | cut -f 1))"
    truncate -s "${gigabytes}G" "$disk"
    printf 'label: dos\nstart=%d,size=%d,type=c,bootable\nstart=%d,type=83\n' $first $boot_sectors $root_first |
        sfdisk -q "$disk"
    dd if=/usr/lib/syslinux/mbr/mbr.bin of="$disk" bs=440 count=1 conv=notrunc status=none
    truncate -s $((boot_sectors * sector)) "$boot"
    mkfs.vfat -F 32 -n BOOT "$boot" >/dev/null
    syslinux --install "$boot"
    cat >"$work/syslinux.cfg" <<'MENU'
SERIAL 0 115200
DEFAULT linux
TIMEOUT 1
LABEL linux
  LINUX /vmlinuz
  INITRD /initrd.img
  APPEND root=LABEL=root rw console=tty0 console=ttyS0,115200 net.ifnames=0 mitigations=off quiet
MENU
    cp "$system"/boot/vmlinuz-* "$work/vmlinuz"
    cp "$system"/boot/initrd.img-* "$work/initrd.img"
    mcopy -i "$boot" "$work/syslinux.cfg" "$work/vmlinuz" "$work/initrd.img" ::
    dd if="$boot" of="$disk" bs=1M seek=1 conv=notrunc,sparse status=none
    mke2fs -q -t ext4 -L root -m 1 -E offset=$((root_first * sector)),lazy_itable_init=1,lazy_journal_init=1 \
        -d "$system" "$disk" "$((gigabytes * 1024 * 1024 - root_first / 2))k"
}

pack() {
    say "packing $box"
    qemu-img convert -c -o compression_type=zstd -O qcow2 "$disk" "$work/box.img"
    printf '{"provider": "libvirt", "format": "qcow2", "virtual_size": %d}\n' $gigabytes >"$work/metadata.json"
    cat >"$work/Vagrantfile" <<'RUBY'
Vagrant.configure("2") do |config|
  config.ssh.username = "vagrant"
  config.vm.guest = :debian
  config.vm.provider(:libvirt) { |machine| machine.disk_bus = "virtio"; machine.nic_model_type = "virtio" }
end
RUBY
    mkdir -p "$(dirname "$box")"
    tar -C "$work" -cf "$box" metadata.json Vagrantfile box.img
}

# shellcheck disable=SC2086 # a list of package names
dpkg-query -W $needed >/dev/null 2>&1 || "$root/setup/apt-install.sh" vagrant-box $needed
debian
vagrant_user
machine
disk_image
pack
say "$(du -h "$box" | cut -f 1) in $box; 'vagrant box add --name loko/bookworm $box' takes it"
