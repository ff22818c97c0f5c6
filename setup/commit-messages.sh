#!/usr/bin/env bash
# commit-messages.sh FILE: is the message in FILE of the project's form? (Git's hook commit-msg.)
# commit-messages.sh: are those of all commits since the last tag, or since this check exists?
#
# The form: "area: imperative subject" of at most 72 characters, an empty line, why.
set -euo pipefail

readonly most=72
readonly form='^[a-z0-9][a-z0-9.-]*(, [a-z0-9][a-z0-9.-]*)*: [^ ].*[^.]$'
wrong=0

# judge NAME SUBJECT SECOND: say in one line what is wrong with the first two lines of a message.
judge() {
    local subject=$2 complaint=
    if [[ $subject == Merge\ * ]]; then
        complaint='a merge; rebase instead'
    elif [[ ! $subject =~ $form ]]; then
        complaint='not of the form "area: imperative subject" without a full stop'
    elif [ "${#subject}" -gt "$most" ]; then
        complaint="${#subject} characters long, and $most are the most"
    elif [ -n "$3" ]; then
        complaint='followed by a line that is not empty'
    fi
    [ -n "$complaint" ] || return 0
    printf 'commit message of %s: "%s" is %s (CONTRIBUTING.md)\n' "$1" "$subject" "$complaint" >&2
    wrong=1
}

if [ $# -gt 0 ]; then
    # Git drops comments from what its editor returns.
    mapfile -t lines < <(sed -e '/^#/d' "$1")
    judge "$1" "${lines[0]:-}" "${lines[1]:-}"
    exit "$wrong"
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! git rev-parse --verify --quiet HEAD >/dev/null 2>&1; then exit 0; fi # sources without their history
since=$(git describe --tags --abbrev=0 2>/dev/null || git log --diff-filter=A --format=%H -- setup/commit-messages.sh | tail -n 1)
[ -n "$since" ] || exit 0
while IFS= read -r commit; do
    { IFS= read -r subject; IFS= read -r second || true; } < <(git log -1 --format=%B "$commit")
    judge "${commit:0:10}" "$subject" "${second:-}"
done < <(git rev-list "$since..HEAD")
exit "$wrong"
