#!/usr/bin/env bash
# image.sh: the container image loko-testbed/service from the wheel, then a run of it. Its base is Debian's, fetched if it
# is not there; BASE names another with Python, such as one from `mmdebstrap --include=python3 … | docker import`.
. "$(dirname "$0")/../step.sh"
alone
use_tools
. "$root/setup/service/tree.sh"
. "$root/setup/container/docker.sh"

readonly image=loko-testbed/service
need_docker
make_tree

build_image service "$root/setup/service/Containerfile" "$tree"

say "trying it"
running=$("$docker" run --detach --network none --env LOKO_TOKEN=a-token-for-a-trial "$image" serve two-switch --emulate)
trap '"$docker" rm --force "$running" >/dev/null 2>&1; give_back' EXIT
for _ in $(seq 600); do
    if told=$("$docker" exec "$running" python3 -c \
        'from urllib.request import urlopen; print(urlopen("http://127.0.0.1:8080/healthz").read().decode())' 2>/dev/null); then break; fi
    [ "$("$docker" inspect --format '{{.State.Running}}' "$running")" = true ] || break
    sleep 0.2
done
if [ -z "${told:-}" ]; then
    "$docker" logs --tail 20 "$running" >&2
    fail "the image is built, but does not serve; above is what it said"
fi
say "it serves: $told"
tell_image service
