#!/usr/bin/env bash
# `make audit`: licences, sources, duplicates and known vulnerabilities of the crates and of Python's packages.
#
# The programs that look are installed in .clients, the first of them in minutes. The advisories are always the newest,
# so this is no part of `make test`: what it finds may change without a change here. What cannot be had here is left
# out, in one line; in CI, that is an error.
. "$(dirname "$0")/step.sh"
alone
use_tools

readonly cargo_deny_version=0.18.9
readonly deny="$clients/cargo-deny/bin/cargo-deny" pip_audit="$clients/pip-audit/bin/pip-audit"
# Not those in tests/clients and requirements-ansible.lock: programs of others, which are old on purpose.
readonly locks=(requirements.lock setup/requirements-{service,bundle,uv,audit}.lock)
failed=false

# leave_out WHAT LOG: say why something is not looked at.
leave_out() {
    say "note: $1 left out: $(trouble "$2" || printf 'see %s' "${2#"$root/"}")"
    [ "${CI:-}" != true ] || failed=true
}

install_cargo_deny() {
    if done_before cargo-deny "$cargo_deny_version" && "$deny" --version >/dev/null 2>&1; then return; fi
    changing "building cargo-deny in ${clients#"$root/"}, which takes minutes"
    begin cargo-deny
    retried cargo install --locked --quiet cargo-deny --version "$cargo_deny_version" --root "$clients/cargo-deny" \
        >>"$state/cargo-deny.log" 2>&1 </dev/null || return 1
    remember cargo-deny "$cargo_deny_version"
}

install_pip_audit() {
    local lock=setup/requirements-audit.lock key
    key=$(fingerprint $lock)-$("$venv/bin/python" --version | tr ' ' '-')
    if done_before pip-audit "$key" && "$pip_audit" --version >/dev/null 2>&1; then return; fi
    changing "installing pip-audit in ${clients#"$root/"}"
    begin pip-audit
    {
        uv venv --quiet --clear --python "$venv/bin/python" "$clients/pip-audit" &&
            retried uv pip install --quiet --python "$clients/pip-audit/bin/python" --require-hashes \
                --only-binary :all: -r $lock
    } >>"$state/pip-audit.log" 2>&1 </dev/null || return 1
    remember pip-audit "$key"
}

# check_crates CHECK …: a warning is an error, such as a licence or an exception that nothing needs.
check_crates() {
    "$deny" --manifest-path switch-emulator/Cargo.toml --locked check --deny warnings --hide-inclusion-graph "$@" || failed=true
}

rust() {
    local log="$state/advisories.log"
    if ! install_cargo_deny; then
        leave_out "the crates are" "$state/cargo-deny.log"
        return
    fi
    check_crates bans licenses sources
    if "$deny" --manifest-path switch-emulator/Cargo.toml --locked fetch db >"$log" 2>&1; then
        check_crates --disable-fetch advisories
    else
        leave_out "the advisories of crates are" "$log"
    fi
}

python() {
    local lock log="$state/vulnerabilities.log"
    if ! install_pip_audit; then
        leave_out "Python's packages are" "$state/pip-audit.log"
        return
    fi
    for lock in "${locks[@]}"; do
        # Strict: a package that cannot be looked up is an error.
        if "$pip_audit" --strict --disable-pip --vulnerability-service osv --progress-spinner off -r "$lock" >"$log" 2>&1; then
            say "$lock: $(tail -n 1 "$log")"
        elif grep -qiE "$no_network" "$log"; then
            leave_out "Python's packages are" "$log"
            return
        else
            say "$lock:" && cat "$log"
            failed=true
        fi
    done
}

cd "$root"
mkdir -p "$state"
rust
python
if $failed; then exit 1; fi
