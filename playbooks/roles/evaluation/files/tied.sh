#!/usr/bin/env bash
# tied.sh COMMAND …: run COMMAND, and end it and its children when the Ansible run that asked for it ends.
#
# On Ctrl-C Ansible ends its own processes, but it cannot end those that sudo gave to root, and it ends none
# when it is killed itself. So this looks twice a second whether every process from here up to ansible-playbook
# is still there.
set -um

owners=()
ancestors=()
pid=$PPID
while [ "$pid" -gt 1 ] && [ -r "/proc/$pid/status" ]; do
    ancestors+=("$pid")
    if grep -qa ansible-playbook "/proc/$pid/cmdline"; then owners=("${ancestors[@]}"); fi
    pid=$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status")
done

group=
end() {
    group=${group:-${!-}}
    [ -n "$group" ] || exit 130
    kill -TERM -- "-$group" 2>/dev/null
    for _ in $(seq 50); do
        kill -0 -- "-$group" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null
    exit 130
}
trap end HUP INT TERM # before there is something to end

"$@" & # with job control: a process group of its own
group=$!

while kill -0 "$group" 2>/dev/null; do
    for pid in "${owners[@]}"; do
        [ -d "/proc/$pid" ] || end
    done
    sleep 0.5
done
wait "$group"
