#!/usr/bin/env bash
# same_sources.sh ROOT [HERE]: let a bare root use the same registries as this machine (HERE, default: /). Copies the
# package sources with the mirror lists and keys that they name, addresses, certificates, and the settings of pip, uv
# and cargo.
set -euo pipefail
readonly root=$1 here=${2:-}

# named: print the files that package sources name: `mirror+file:/LIST`, and `Signed-By: /KEY` or `[signed-by=/KEY]`.
named() {
    find "$here/etc/apt/sources.list" "$here/etc/apt/sources.list.d" -type f -exec \
        grep -hoiE '(mirror\+file:|signed-by(=|:[[:space:]]*))/[^],[:space:]]+' {} + 2>/dev/null |
        sed -E 's|^[^/]*||' | sort -u
}

rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
mapfile -t keys_and_mirrors < <(named)
for path in /etc/apt/apt.conf.d /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/trusted.gpg.d \
    "${keys_and_mirrors[@]}" /etc/resolv.conf /etc/hosts \
    /etc/pip.conf /etc/uv /etc/ssl/certs /usr/local/share/ca-certificates \
    "$HOME/.config/pip" "$HOME/.config/uv" "$HOME/.cargo/config.toml"; do
    if [ ! -e "$here$path" ]; then continue; fi
    mkdir -p "$root$(dirname "$path")"
    cp -aLT "$here$path" "$root$path" 2>/dev/null || true # dangling links do no harm
done
