#!/usr/bin/env bash
# release-notes.sh VERSION: what CHANGELOG.md says of a version. An error if it says nothing, or if the version is
# not that of the package and of CITATION.cff.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?release-notes.sh: give a version, such as 0.1.0}

fail() {
    echo "release-notes.sh: $1" >&2
    exit 2
}

grep -qxF "version = \"$version\"" pyproject.toml || fail "pyproject.toml: is of another version than $version"
grep -qxF "version: $version" CITATION.cff || fail "CITATION.cff: is of another version than $version"
notes=$(awk -v heading="## $version" '$0 == heading { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || fail "CHANGELOG.md: has nothing below '## $version'"
echo "$notes"
