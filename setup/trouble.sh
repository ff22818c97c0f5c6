# shellcheck shell=bash
# Derive a one-line explanation, with advice, from the log of a failed command. Sourced by step.sh.

# trouble LOG: print the line; fail if nothing known is found in the log.
trouble() {
    local log=$1 package
    package=$(sed -nE \
        -e 's/^E: Unable to locate package (\S+).*/\1/p' \
        -e "s/^E: Package '?([^' ]+)'? has no installation candidate.*/\1/p" "$log" | head -n 1)
    if grep -qiE 'No space left on device|not enough free space|Disk quota exceeded' "$log"; then
        printf 'the disk is full: make room (df -h shows where), then repeat; what is done is kept'
    elif grep -qiE 'Could not get lock|Unable to acquire the dpkg' "$log"; then
        printf 'another program is installing packages: wait until it has finished, then repeat'
    elif grep -qE '^sudo: .*(a password is required|a terminal is required|no tty present|not in the sudoers)|is not in the sudoers file|not allowed to execute' "$log"; then
        printf "this needs root, and sudo refuses: run 'sudo -v' first, or 'make setup' once as root; then repeat"
    elif grep -qiE 'hash mismatch|do not match the hashes' "$log"; then
        printf 'a registry served another package than the one that is pinned here (its hash differs), and it was not installed: ask who serves packages to this machine, such as a mirror or a proxy'
    elif grep -qiE "$no_network" "$log"; then
        printf 'no network: a registry of packages cannot be reached; connect this machine (or set its proxy), then repeat; what is done is kept'
    elif [ -n "$package" ]; then
        printf "this distribution's lists have no package '%s': enable the part of it that does, or install the program by hand" "$package"
    elif grep -qE 'Packages need to be removed but remove is disabled' "$log"; then
        printf 'a package here conflicts with one that is needed, and set-up removes nothing: see the log and decide'
    elif grep -qE 'trying to overwrite|unmet dependencies|held broken packages' "$log"; then
        printf "the installed packages do not fit together: run 'apt-get -f install', then repeat"
    else
        return 1
    fi
}

# The messages of apt, pip, uv and cargo if a registry cannot be reached.
readonly no_network='Temporary failure (in name resolution|resolving)|Could not resolve|Name or service not known|Network is unreachable|No route to host|Could not connect to|Cannot initiate the connection|Connection (refused|timed out)|dns error|failed to lookup address|error sending request|Failed to establish a new connection|spurious network error|Failed to fetch'
