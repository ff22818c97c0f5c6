"""Failures of provisioning are reported in one line, and a second run repairs them."""

from __future__ import annotations

import re

import pytest
from disposable_root import DisposableRoot
from live_harness import needs_namespaces
from package_source import make_source

pytestmark = [pytest.mark.disposable_root, needs_namespaces, pytest.mark.timeout(900)]

CAPTURE = "setup/packages.sh capture"
PURGE = "dpkg --purge tcpdump >/dev/null"


@pytest.fixture
def machine(tmp_path):
    return DisposableRoot(tmp_path)


@pytest.fixture
def use(machine):
    packages = machine.shared / "packages"
    packages.mkdir()
    return make_source(packages, ["tcpdump"])


def says(machine, script):
    """Run a script; return the status of its last command and the lines of output."""
    done = machine.run(f"export LOKO_SETUP_PAUSE_S=0\n{script}", check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_without_a_network_a_playbook_says_so_in_one_line_and_a_second_run_mends_it(machine, use):
    play = ["playbooks/provision.yml", "--tags", "capture"]
    refused, mended = machine.plays(f"rm -rf /var/lib/apt/lists; {PURGE}", play, use, play)
    assert refused.status == 2
    assert "no network: a registry of packages cannot be reached" in refused.complaint
    assert "\n" not in refused.complaint
    assert (mended.status, mended.changed) == (0, ["capture : Install the taps"]), mended.output


def test_a_package_that_no_list_knows_is_named(machine, use):
    status, lines = says(machine, f"{use}; >/mnt/shared/packages/Packages; {PURGE}; {CAPTURE}")
    assert status == 1
    assert "lists have no package 'tcpdump'" in lines[-1]


def test_a_full_disk_is_told_before_anything_is_half_done_and_room_mends_it(machine, use):
    machine.size_mib = 150
    fill = "df -Pm /usr | awk 'NR == 2 {print $4 - 10}' | xargs -I{} fallocate -l {}M /filler"
    again = f"{CAPTURE} 2>&1 | sed 's/^/first /'; rm /filler; {CAPTURE} && command -v tcpdump"
    status, lines = says(machine, f"{use}; {PURGE}; {fill}; {again}")
    assert status == 0, lines
    assert any("first setup: the disk is full: /usr has" in line for line in lines)


def test_an_installation_that_was_killed_half_way_is_finished(machine, use):
    # The state that dpkg leaves if it dies between unpacking and configuring.
    half = "cd /tmp; dpkg --unpack /mnt/shared/packages/tcpdump.deb; cd -"
    installed = "dpkg-query -W -f '${db:Status-Status}\\n' tcpdump"
    status, lines = says(machine, f"{use}; {PURGE}; {half}; {installed}; {CAPTURE}; {installed}")
    assert status == 0
    assert "unpacked" in lines
    assert "installed" in lines


def test_what_a_killed_installation_of_open_vswitch_left_is_taken_back(machine):
    # It was killed while installing the package: no service can start until the policy file is removed.
    policy = "/usr/sbin/policy-rc.d"
    begun = f"""
        mark=$(sed -n "s/^readonly mark='\\(.*\\)'$/\\1/p" setup/openvswitch.sh)
        printf '#!/bin/sh\\n%s\\nexit 101\\n' "$mark" >{policy}
        touch "$BUILD/.setup/openvswitch.unfinished"
        update-rc.d openvswitch-switch enable
    """
    status, lines = says(
        machine,
        f'{begun}\nsetup/openvswitch.sh; ls {policy} "$BUILD/.setup/openvswitch.unfinished"; ls /etc/rc2.d;'
        " setup/openvswitch.sh",
    )
    assert status == 0, lines
    assert not [line for line in lines if line == policy or line.endswith(".unfinished")], lines
    assert not [line for line in lines if re.fullmatch(r"S\d+openvswitch-switch", line)], lines
    assert sum("installing openvswitch-switch" in line for line in lines) == 1, lines


def test_what_the_set_up_of_another_folder_still_needs_is_left(machine):
    policy = "/usr/sbin/policy-rc.d"
    begun = f"""
        mark=$(sed -n "s/^readonly mark='\\(.*\\)'$/\\1/p" setup/openvswitch.sh)
        sleep 1000 &
        printf '#!/bin/sh\\n%s\\n# by process %s\\nexit 101\\n' "$mark" $! >{policy}
    """
    status, lines = says(
        machine,
        f"{begun}\nsetup/openvswitch.sh; ls {policy}; kill $!; wait $!; setup/openvswitch.sh; ls {policy}",
    )
    assert lines[0] == policy, lines
    assert status == 2, "it is gone with the other one"


def test_a_step_that_was_killed_is_done_again_even_if_its_sources_go_back(machine):
    # A second set-up is killed at its beginning; then the sources of the last complete set-up come back.
    key = 'cd "$BUILD"; cp .setup/python.done /tmp/key; echo other >.setup/python.done; cd -'
    begun = 'while [ -e "$BUILD/.setup/python.done" ] && kill -0 $!; do sleep 0.01; done'
    killed = f"set -m; setup/python.sh & {begun}; kill -KILL -- -$!; wait $!"
    left = 'cd "$BUILD"; rm -f .venv/bin/loko; cp /tmp/key .setup/before; ls .setup/python.done; cd -'
    status, lines = says(
        machine,
        f'{key}; {killed}; {left}; setup/python.sh; "$BUILD/.venv/bin/loko" figures | head -n 1',
    )
    assert status == 0, lines
    assert sum("installing the Python environment" in line for line in lines) == 2, lines


def test_a_machine_without_the_repository_is_told(tmp_path):
    play = ["playbooks/provision.yml", "--tags", "capture", "-e", "testbed_root=/nowhere"]
    [refused] = DisposableRoot(tmp_path).plays(play)
    assert "/nowhere is no copy of the testbed's repository" in refused.complaint


def test_the_program_containerlab_outlives_the_folder_that_it_was_built_in(machine):
    # This holds even if an earlier set-up left a link into such a folder.
    status, lines = says(
        machine,
        """
        prebuilt=$(. setup/environment.sh && echo "$prebuilt")
        mkdir -p "$prebuilt"
        printf '#!/bin/sh\\necho built here\\n' >"$prebuilt/containerlab"
        chmod +x "$prebuilt/containerlab"
        ln -sfn "$prebuilt/containerlab" /usr/local/bin/containerlab
        setup/containerlab.sh && setup/containerlab.sh
        rm "$prebuilt/containerlab"
        containerlab
        """,
    )
    assert (status, lines) == (0, ["built here"])
