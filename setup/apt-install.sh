#!/usr/bin/env bash
# apt-install.sh STEP PACKAGE …: install distribution packages for a step; never removes or asks anything.
. "$(dirname "$0")/step.sh"

readonly step=$1
shift

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# Fetch the package lists only if a package is unknown, or if its known version is no longer available.
known() {
    [ "$(apt-cache policy "$@" 2>/dev/null | grep -c 'Candidate: [^(]')" -eq "$#" ]
}

root_for "installing packages ($*)"
# An interrupted installation would make this one fail, so complete it first.
logged "$step" as_root dpkg --configure -a
if ! known "$@"; then
    logged "$step" retried apt update
fi
if ! apt install -y --no-install-recommends --no-remove "$@" >>"$state/$step.log" 2>&1 </dev/null; then
    logged "$step" retried apt update
    logged "$step" retried apt install -y --no-install-recommends --no-remove "$@"
fi
