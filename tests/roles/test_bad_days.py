"""What goes wrong when a machine is provisioned is told in one line, and a second run mends it."""

from __future__ import annotations

import pytest
from live_harness import needs_root
from package_source import make_source
from throwaway import Throwaway

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]

CAPTURE = ["playbooks/provision.yml", "--tags", "capture"]
NO_LISTS = "rm -rf /var/lib/apt/lists; dpkg --purge tcpdump"


@pytest.fixture
def machine(tmp_path):
    return Throwaway(tmp_path)


@pytest.fixture
def use(machine):
    packages = machine.shared / "packages"
    packages.mkdir()
    return make_source(packages, ["tcpdump"])


def one_line(play):
    assert play.status != 0
    assert "\n" not in play.complaint
    assert "Traceback" not in play.output
    return play.complaint


def test_without_a_network_one_line_says_so_and_a_second_run_mends_it(machine, use):
    refused, mended = machine.plays(NO_LISTS, CAPTURE, use, CAPTURE)
    assert "no network: a registry of packages cannot be reached" in one_line(refused)
    assert (mended.status, mended.changed) == (0, ["capture : Install the taps"]), mended.output


def test_a_package_that_no_list_knows_is_named(machine, use):
    [refused] = machine.plays(
        use, "rm /mnt/shared/packages/Packages; touch /mnt/shared/packages/Packages", NO_LISTS, CAPTURE
    )
    assert "lists have no package 'tcpdump'" in one_line(refused)


def test_a_full_disk_is_told_before_anything_is_half_done_and_mended_by_room(machine, use):
    fill = "dd if=/dev/zero of=/filler bs=1M count=$(($(df -Pm /usr | awk 'NR == 2 {print $4}') - 10)) status=none"
    refused, mended = machine.plays(use, "dpkg --purge tcpdump", fill, CAPTURE, "rm /filler", CAPTURE)
    assert "the disk is full: /usr has" in one_line(refused)
    assert (mended.status, mended.changed) == (0, ["capture : Install the taps"]), mended.output


def test_an_installation_that_was_killed_half_way_is_finished(machine, use):
    # What dpkg leaves when it dies between unpacking and configuring.
    half = "apt-get update; cd /tmp; apt-get download tcpdump; dpkg --unpack tcpdump*.deb; cd -"
    [mended] = machine.plays(use, "dpkg --purge tcpdump", half, CAPTURE)
    assert (mended.status, mended.changed) == (0, ["capture : Install the taps"]), mended.output


def test_an_environment_whose_installation_was_killed_is_made_anew(machine):
    again = ["playbooks/provision.yml", "--tags", "controller"]
    killed, second = machine.plays("rm .setup/python.done .venv/bin/loko", again, again)
    assert killed.changed == ["controller : Install the Python environment"], killed.output
    assert (second.status, second.changed) == (0, []), second.output


def test_a_machine_without_the_repository_is_told(machine):
    [refused] = machine.plays([*CAPTURE, "-e", "testbed_root=/nowhere"])
    assert "/nowhere is no copy of the testbed's repository" in one_line(refused)
