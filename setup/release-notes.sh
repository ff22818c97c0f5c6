#!/usr/bin/env bash
# release-notes.sh VERSION: print what CHANGELOG.md says about a version. Fails if it says nothing, or if the version
# differs from that of the package or of CITATION.cff.
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
