#!/usr/bin/env bash
# Step 4: uv, in an environment of its own, unless one that is new enough is there.
. "$(dirname "$0")/step.sh"

readonly uv_pinned=0.13.8

. "$root/setup/prebuilt.sh"

if find_uv >/dev/null; then exit 0; fi
if [ -x "$prebuilt/uv" ]; then
    changing "installing uv in /usr/local/bin"
    begin uv
    logged uv as_root install -m 755 "$prebuilt/uv" /usr/local/bin/uv
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    readonly home=/usr/local/lib/loko-testbed/uv bin=/usr/local/bin
else
    readonly home="$HOME/.local/share/loko-testbed/uv" bin="$HOME/.local/bin"
fi

changing "installing uv $uv_pinned in $home"
begin uv
mkdir -p "$(dirname "$home")" "$bin"
room 200 "$(dirname "$home")"
logged uv /usr/bin/python3 -m venv --clear "$home"
if [ -z "${PIP_CERT:-}" ] && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
    export PIP_CERT=/etc/ssl/certs/ca-certificates.crt # the machine's certificates, not pip's own
fi
logged uv retried "$home/bin/pip" install --quiet "uv==$uv_pinned"
ln -sf "$home/bin/uv" "$bin/uv"
case ":$PATH:" in
*":$bin:"*) ;;
*) say "note: $bin is not on your PATH; 'uv run loko' needs it, ${venv#"$root/"}/bin/loko does not" ;;
esac
