#!/usr/bin/env bash
# tied.sh COMMAND …: run COMMAND, and end it and its children when the Ansible run that asked for it ends, or this does.
#
# On Ctrl-C Ansible ends its own processes, but it cannot end those that sudo gave to root, and it ends none
# when it is killed itself. So this looks twice a second whether every process from here up to ansible-playbook
# is still there. Killed, it cannot look: so a process of its own waits until the pipe from here is closed.
set -um

owners=()
ancestors=()
pid=$PPID
while [ "$pid" -gt 1 ] && [ -r "/proc/$pid/status" ]; do
    ancestors+=("$pid")
    if grep -qa ansible-playbook "/proc/$pid/cmdline"; then owners=("${ancestors[@]}"); fi
    pid=$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status")
done

# kill_group: end the command and its children; those that do not within five seconds, at once.
kill_group() {
    kill -TERM -- "-$group" 2>/dev/null
    for _ in $(seq 50); do
        kill -0 -- "-$group" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null
}

group=
end() {
    group=${group:-${!-}}
    [ -n "$group" ] || exit 130
    kill_group
    echo ended >&"$guarded"
    exit 130
}
trap end HUP INT TERM # before there is something to end

"$@" & # with job control: a process group of its own
group=$!

exec {guarded}> >( # closed when this ends, whatever ends it
    trap '' HUP INT TERM
    read -r word
    [ "$word" = ended ] || kill_group
)

while kill -0 "$group" 2>/dev/null; do
    for pid in "${owners[@]}"; do
        [ -d "/proc/$pid" ] || end
    done
    sleep 0.5
done
wait "$group"
status=$?
echo ended >&"$guarded"
exit "$status"
