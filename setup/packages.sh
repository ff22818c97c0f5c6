#!/usr/bin/env bash
# Step 1: the distribution's packages named in packages.txt.
. "$(dirname "$0")/step.sh"

readonly list="$root/setup/packages.txt"

missing_packages() {
    local package
    grep -v -e '^#' -e '^$' "$list" | while IFS= read -r package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
    done
}

command -v apt-get >/dev/null ||
    fail "no apt-get here: set-up knows Debian and Ubuntu. Elsewhere install what setup/packages.txt names."

mapfile -t missing < <(missing_packages)
[ "${#missing[@]}" -gt 0 ] || exit 0

say "installing ${#missing[@]} packages: ${missing[*]}"
rm -f "$state/packages.log"
"$root/setup/apt-install.sh" packages "${missing[@]}"
