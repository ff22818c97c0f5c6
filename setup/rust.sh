#!/usr/bin/env bash
# Step 3: a Rust tool-chain, unless a recent enough one is installed.
. "$(dirname "$0")/step.sh"
alone

. "$root/setup/prebuilt.sh"

if find_rust >/dev/null || prebuilt_emulator; then exit 0; fi

candidate() {
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# The package names of tool-chains in distributions: compiler, cargo, clippy, rustfmt. Debian 12 has a recent one as
# rustc-web; Ubuntu has numbered ones beside its default.
choices() {
    printf '%s\n' 'rustc cargo rust-clippy rustfmt' 'rustc-web cargo-web rust-web-clippy rustfmt-web'
    apt-cache pkgnames rustc-1. | sed -n 's/^rustc-\(1\.[0-9]*\)$/\1/p' | sort -Vr |
        sed 's/.*/rustc-& cargo-& rust-&-clippy rustfmt-&/'
}

choose() {
    local compiler rest version package available
    while read -r compiler rest; do
        version=$(candidate "$compiler")
        if [ -z "$version" ] || ! at_least "$version" "$rust_minimum"; then continue; fi
        available=$compiler
        for package in $rest; do
            if [ -n "$(candidate "$package")" ]; then available+=" $package"; fi
        done
        printf '%s\n' "$available"
        return
    done < <(choices)
}

chosen=$(choose)
# With --check, the package lists may not have been fetched yet.
if $checking && [ -z "$chosen" ]; then changing "installing Rust, $rust_minimum or newer"; fi
[ -n "$chosen" ] ||
    fail "no Rust $rust_minimum or newer here, nor among this distribution's packages. Install one from https://rustup.rs, then repeat."
changing "installing Rust: $chosen"
room 900 /usr
begin rust
# shellcheck disable=SC2086 # a list of package names
"$root/setup/apt-install.sh" rust $chosen
find_rust >/dev/null || fail "the packages $chosen brought no cargo that works; see $state/rust.log"
