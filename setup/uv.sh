#!/usr/bin/env bash
# Step 4: uv, in an environment of its own, unless a recent enough one is installed.
. "$(dirname "$0")/step.sh"
alone
. "$root/setup/prebuilt.sh"

if find_uv >/dev/null; then exit 0; fi
if [ "$(id -u)" -eq 0 ]; then
    readonly home=/usr/local/lib/loko-testbed/uv bin=/usr/local/bin
else
    readonly home="$HOME/.local/share/loko-testbed/uv" bin="$HOME/.local/bin"
fi

# reachable: print a note if the installed program is not on PATH.
reachable() {
    case ":$PATH:" in
    *":$bin:"*) ;;
    *) say "note: $bin is not on your PATH; 'uv run loko' needs it, ${venv#"$root/"}/bin/loko does not" ;;
    esac
}

if "$prebuilt/uv" --version >/dev/null 2>&1; then
    changing "installing uv in $bin"
    begin uv
    logged uv install -D -m 755 "$prebuilt/uv" "$bin/uv"
    reachable
    exit 0
fi

# Pinned packages are checked against their hashes, as this may run as root.
readonly lock="$root/setup/requirements-uv.lock"
uv_pinned=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' "$lock")
readonly uv_pinned

changing "installing uv $uv_pinned in $home"
begin uv
mkdir -p "$(dirname "$home")" "$bin"
exec 7<"$(dirname "$home")" # shared by all folders of this user
if ! flock --nonblock 7; then
    say "another folder's set-up is installing uv: waiting until it has ended" >&2
    flock 7
    if find_uv >/dev/null; then exit 0; fi
fi
room 200 "$(dirname "$home")"
logged uv /usr/bin/python3 -m venv --clear "$home"
if [ -z "${PIP_CERT:-}" ] && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
    export PIP_CERT=/etc/ssl/certs/ca-certificates.crt # the machine's certificates instead of pip's own
fi
logged uv retried "$home/bin/pip" install --quiet --require-hashes --only-binary :all: -r "$lock"
ln -sf "$home/bin/uv" "$bin/uv"
reachable
