#!/usr/bin/env bash
# packages.sh [--check] [GROUP …]: install the distribution packages of these groups in packages.txt, or of all groups.
. "$(dirname "$0")/step.sh"
alone

readonly list="$root/setup/packages.txt"

# wanted GROUP …: print the packages of these groups; of all groups if none is given.
wanted() {
    awk -v groups=" $* " '
        { sub(/#.*/, ""); gsub(/[ \t]/, "") }
        /^\[/ { group = substr($0, 2, length - 2); next }
        $0 != "" && (groups == "  " || index(groups, " " group " ")) { print }' "$list"
}

missing_packages() {
    local package
    while IFS= read -r package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
    done < <(wanted "$@")
}

for group in "$@"; do
    grep -q "^\[$group\]" "$list" || fail "setup/packages.txt has no group '$group'"
done
command -v apt-get >/dev/null ||
    fail "no apt-get here: set-up knows Debian and Ubuntu. Elsewhere install what setup/packages.txt names."

mapfile -t missing < <(missing_packages "$@")
[ "${#missing[@]}" -gt 0 ] || exit 0

changing "installing ${#missing[@]} packages: ${missing[*]}"
room $((40 * ${#missing[@]})) /usr
begin packages
"$root/setup/apt-install.sh" packages "${missing[@]}"
