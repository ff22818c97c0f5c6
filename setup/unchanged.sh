#!/usr/bin/env bash
# unchanged.sh NAME PATH … -- COMMAND …: run COMMAND, unless these files and folders are the same as when it last
# succeeded. For checks that depend on nothing else.
. "$(dirname "$0")/step.sh"
use_tools

name=$1
shift
paths=()
while [ "$1" != -- ]; do
    paths+=("$1")
    shift
done
shift

files=$(fingerprint "${paths[@]}" requirements.lock) # ends here if a path does not exist
key=$files-$(printf '%s' "$*" | sha256sum | cut -c 1-16)
if done_before "$name" "$key"; then exit 0; fi
begin "$name"
cd "$root"
"$@"
remember "$name" "$key"
