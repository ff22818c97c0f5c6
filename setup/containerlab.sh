#!/usr/bin/env bash
# containerlab.sh: the program containerlab, unless it is there. It is in no distribution, so it is built from source, at
# the version that containerlab/go.mod pins, into prebuilt/ and linked into /usr/local/bin.
. "$(dirname "$0")/step.sh"

readonly program="$root/prebuilt/containerlab" go_minimum=1.23
PATH="$PATH:/usr/local/go/bin"

if [ ! -x "$program" ]; then
    if command -v containerlab >/dev/null; then exit 0; fi
    version=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || version=0
    at_least "${version:-0}" "$go_minimum" ||
        fail "containerlab is built with Go $go_minimum or newer, and none is here: install Go (https://go.dev/dl), or containerlab itself"
    say "building containerlab (Go)"
    rm -f "$state/containerlab.log"
    mkdir -p "$root/prebuilt"
    cd "$root/setup/containerlab"
    pinned=$(sed -n 's|^require github.com/srl-labs/containerlab v||p' go.mod)
    logged containerlab env CGO_ENABLED=0 go build -mod=readonly -trimpath \
        -ldflags "-s -w -X github.com/srl-labs/containerlab/cmd.version=$pinned" \
        -o "$program" github.com/srl-labs/containerlab
fi
as_root ln -sfn "$program" /usr/local/bin/containerlab
