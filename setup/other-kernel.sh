#!/usr/bin/env bash
# `make other-kernel`, for the tests only: QEMU and Debian's stock kernel, with modules that many machines lack, such as
# openvswitch, cls_flower and sch_fq. The kernel is unpacked in .clients, not installed.
. "$(dirname "$0")/step.sh"
alone

readonly home="$clients/other-kernel"

if [ -f "$home/initramfs" ] && command -v qemu-system-x86_64 >/dev/null; then exit 0; fi
[ "$(uname -m)" = x86_64 ] || fail "the other kernel is for x86_64 only: its tests are skipped"
changing "installing qemu-system-x86, and unpacking a kernel in ${clients#"$root/"} (350 MB)"
room 500 "$build"
begin other-kernel
if ! apt-cache show linux-image-amd64 >/dev/null 2>&1; then
    logged other-kernel retried as_root apt-get -q update
fi
if ! command -v qemu-system-x86_64 >/dev/null; then
    root_for "installing qemu-system-x86"
    "$root/setup/apt-install.sh" other-kernel qemu-system-x86
fi
image=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -n 1)
[ -n "$image" ] || fail "no package linux-image-amd64 here: Debian has it; the other kernel's tests are skipped"
rm -rf "$home"
mkdir -p "$home/packages" "$home/unpacked" "$home/initial/modules" "$home/initial/machine" "$home/initial/bin"
cd "$home/packages"
logged other-kernel retried apt-get -q download "$image" busybox-static
for package in *.deb; do logged other-kernel dpkg-deb --extract "$package" "$home/unpacked"; done
cd "$home"
release=$(ls unpacked/lib/modules)
logged other-kernel "$(command -v depmod || echo /sbin/depmod)" -b unpacked "$release"
mv "unpacked/boot/vmlinuz-$release" kernel
# The modules needed to reach this machine's files, from which the kernel loads all others.
number=10
for module in virtio_pci 9pnet_virtio 9p; do
    while read -r _ file _; do
        compgen -G "initial/modules/*-${file##*/}" >/dev/null && continue
        cp "$file" "initial/modules/$number-${file##*/}"
        number=$((number + 1))
    done < <("$(command -v modprobe || echo /sbin/modprobe)" -d unpacked -S "$release" --show-depends "$module")
done
cp unpacked/bin/busybox initial/bin/
cat >initial/init <<'END'
#!/bin/busybox sh
for module in /modules/*; do /bin/busybox insmod "$module"; done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose machine /machine
# What the kernel is told and does not know is in the environment.
exec /bin/busybox switch_root /machine /bin/sh "$script"
END
chmod 755 initial/init
(cd initial && find . | bin/busybox cpio -o -H newc 2>/dev/null) >initramfs
rm -rf packages initial unpacked/boot unpacked/usr
