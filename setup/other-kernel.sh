#!/usr/bin/env bash
# `make other-kernel`, for the tests only: Debian's user-mode Linux, a kernel that is a program. It has modules that many
# machines lack, such as openvswitch and cls_flower. Unpacked in .clients, not installed.
. "$(dirname "$0")/step.sh"
alone

readonly home="$clients/user-mode-linux"

if [ -x "$home/usr/bin/linux.uml" ]; then exit 0; fi
changing "unpacking user-mode Linux in ${clients#"$root/"} (120 MB)"
room 400 "$build"
begin other-kernel
rm -rf "$home"
mkdir -p "$home"
cd "$home"
if ! apt-cache show user-mode-linux >/dev/null 2>&1; then
    logged other-kernel retried as_root apt-get -q update
fi
if ! apt-get -q download user-mode-linux >>"$state/other-kernel.log" 2>&1 </dev/null; then
    rm -rf "$home"
    fail "no package user-mode-linux here: Debian has it; its tests are skipped"
fi
logged other-kernel dpkg-deb --extract user-mode-linux_*.deb .
rm -f user-mode-linux_*.deb
# `modprobe -d` looks for lib/modules below its folder.
mkdir -p lib
ln -s ../usr/lib/uml/modules lib/modules
