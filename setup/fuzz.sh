#!/usr/bin/env bash
# The instrumented fuzz targets of switch-emulator/fuzz, and their initial inputs. `make fuzz` calls this; it is not
# part of `make setup`. cargo builds only what has changed.
#
# The flags are those of `cargo fuzz build --sanitizer none`. They work with the stable compiler, so neither a nightly
# version nor cargo-fuzz is needed. The address sanitizer would find nothing, as the code under test forbids unsafe
# code.
. "$(dirname "$0")/step.sh"
alone
use_tools

readonly workspace="$root/switch-emulator"
readonly coverage=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
)
host=$(rustc -vV | sed -n 's/^host: //p')
readonly host

cd "$workspace"
begin fuzz
cargo fetch --locked --offline --quiet 2>/dev/null || logged fuzz retried cargo fetch --locked
# Name the target explicitly so that the flags apply only to it, not to build scripts and macros.
logged fuzz env RUSTFLAGS="--cfg fuzzing ${coverage[*]}" \
    cargo build --profile fuzz --locked --offline -p zodiac-fuzz --features libfuzzer --bins --target "$host"
mkdir -p "$target/fuzzing"
# seeds EXCHANGES TARGET …: create the initial inputs of these targets.
seeds() {
    logged fuzz env -u RUSTFLAGS cargo run --locked --offline -p zodiac-fuzz --example seeds -- \
        "firmware/tests/$1" "$target/fuzzing/corpus" "${@:2}"
}
seeds exchanges frames openflow console
seeds exchanges13 openflow13

ln -sfn "$target/$host/fuzz" "$target/fuzzing/bin"
