#!/usr/bin/env bash
# dist.sh: the program and the module as they are shipped and measured, by the profile `dist` of
# switch-emulator/Cargo.toml. In $shipped/python the module is a package, to take the place of that of set-up.
. "$(dirname "$0")/step.sh"
alone
use_tools

find_rust >/dev/null || fail "the emulator was built elsewhere (prebuilt/): do this where it was built"
say "building the emulator as it is shipped (Rust, dist)"
[ -d "$shipped" ] || room 500 "$target"
begin dist
export CARGO_TARGET_DIR="$target"
cd "$root/switch-emulator"
logged dist cargo build --profile dist --locked --offline -p zodiac-live -p zodiac-python
package="$shipped/python/switch_emulator"
mkdir -p "$package"
cp python/switch_emulator/__init__.py "$package"
ln -sfn "$shipped/libswitch_emulator.so" "$package/switch_emulator.abi3.so"
