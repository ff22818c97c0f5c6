#!/usr/bin/env bash
# apt-install.sh STEP PACKAGE …: install distribution packages for a step; removes nothing, asks nothing.
. "$(dirname "$0")/step.sh"

readonly step=$1
shift

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# The lists are fetched only when they do not know every package, or what they know is no longer there.
known() {
    [ "$(apt-cache policy "$@" 2>/dev/null | grep -c 'Candidate: [^(]')" -eq "$#" ]
}

root_for "installing packages ($*)"
# What an installation left that was interrupted would stop the next one.
logged "$step" as_root dpkg --configure -a
if ! known "$@"; then
    logged "$step" retried apt update
fi
if ! apt install -y --no-install-recommends --no-remove "$@" >>"$state/$step.log" 2>&1 </dev/null; then
    logged "$step" retried apt update
    logged "$step" retried apt install -y --no-install-recommends --no-remove "$@"
fi
