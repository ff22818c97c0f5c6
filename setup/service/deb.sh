#!/usr/bin/env bash
# deb.sh: dist/loko-testbed_*.deb for this release of Debian or Ubuntu: what the wheel has, in /opt/loko, with a unit.
. "$(dirname "$0")/../step.sh"
alone
use_tools
. "$root/setup/service/tree.sh"

command -v dpkg-deb >/dev/null || fail "dpkg-deb is not there: make the package on a Debian or Ubuntu"
make_tree
begin deb
packed="$build/dist/deb"
rm -rf "$packed"
mkdir -p "$packed/DEBIAN" "$packed/lib/systemd/system" "$packed/usr/share/doc/loko-testbed"
cp -a "$tree"/. "$packed"
cp "$root/setup/service/loko@.service" "$packed/lib/systemd/system"
cp "$root/README.md" "$root/CHANGELOG.md" "$root/setup/service/nginx.conf" "$packed/usr/share/doc/loko-testbed"
cp "$root/LICENSE" "$packed/usr/share/doc/loko-testbed/copyright"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/pyproject.toml")
architecture=$(dpkg --print-architecture)
minor=$("$system_python" -c 'import sys; print(sys.version_info.minor)')
cat >"$packed/DEBIAN/control" <<CONTROL
Package: loko-testbed
Version: $version
Architecture: $architecture
Maintainer: The Loko testbed's authors <loko-testbed@localhost>
Section: net
Priority: optional
Installed-Size: $(du -sk "$packed/opt" | cut -f 1)
Depends: python3 (>= 3.$minor), python3 (<< 3.$((minor + 1))), libc6, libgcc-s1, libstdc++6
Description: predictable latency on low-cost switches, replayable
 The planner, the admission service and the emulated Zodiac FX boards of the Loko testbed, with all Python
 packages that they need, in /opt/loko. Live labs need the environment that 'make setup' makes instead.
CONTROL

file="$build/dist/loko-testbed_${version}_$architecture.deb"
logged deb dpkg-deb --root-owner-group -Zzstd -z3 --build "$packed" "$file"
rm -rf "$packed"
say "trying it"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"; give_back' EXIT
logged deb dpkg-deb --extract "$file" "$unpacked"
logged deb env -C "$unpacked" HOME="$unpacked" "$unpacked/opt/loko/bin/loko" plan two-switch \
    "$unpacked/opt/loko/lib/python3.$minor/site-packages/loko/data/labs/two-switch/flows.yml"
say "written: ${file#"$root/"} ($(du -h "$file" | cut -f 1))"
