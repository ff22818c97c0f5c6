"""The roles that install, each on a throw-away machine that lacks what it brings: first told, then done, then unchanged."""

from __future__ import annotations

import pytest
from live_harness import needs_root
from package_source import make_source
from throwaway import Throwaway

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]

PROVISION = "playbooks/provision.yml"
STALE = "echo none >.setup/{}.done"
"""As if a set-up had been made of other sources."""

BREAK = {
    "open_vswitch": "dpkg --purge --force-depends openvswitch-switch",
    "mininet": "dpkg --purge mgen",
    "capture": "dpkg --purge tcpdump",
    "controller": f"rm .venv/bin/loko; {STALE.format('python')}",
}
CHANGED = {
    "open_vswitch": ["open_vswitch : Install Open vSwitch"],
    "mininet": ["mininet : Install Mininet and what a live lab runs"],
    "capture": ["capture : Install the taps"],
    "controller": ["controller : Install the Python environment"],
}
FIXED = {
    "open_vswitch": "command -v ovs-vswitchd && ! pgrep ovs",
    "mininet": "command -v mgen",
    "capture": "command -v tcpdump",
    "controller": ".venv/bin/loko figures",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    machine = Throwaway(folder)
    packages = machine.shared / "packages"
    packages.mkdir()
    return machine, make_source(packages, ["mgen", "tcpdump", "openvswitch-switch"])


@pytest.mark.parametrize("role", BREAK)
def test_a_role_mends_what_is_missing_and_then_changes_nothing(role, source):
    machine, use = source
    play = [PROVISION, "--tags", role]
    told, done, again = machine.plays(
        use,
        BREAK[role],
        [*play, "--check"],
        play,
        f"({FIXED[role]}) >/dev/null && touch /mnt/shared/{role}",
        play,
    )
    assert told.status == 0, told.output
    assert told.changed == CHANGED[role]
    assert done.status == 0, done.output
    assert done.changed == CHANGED[role]
    assert (machine.shared / role).exists()
    assert (again.status, again.changed) == (0, []), again.output


def test_the_whole_playbook_changes_nothing_where_all_is_there_even_without_a_network(tmp_path):
    first, second = Throwaway(tmp_path).plays([PROVISION], [PROVISION, "--check"])
    assert (first.status, first.changed) == (0, []), first.output
    assert (second.status, second.changed) == (0, []), second.output


def test_a_missing_emulator_is_told_and_not_built_in_check_mode(tmp_path):
    [told] = Throwaway(tmp_path).plays(STALE.format("emulator"), [PROVISION, "--tags", "emulator", "--check"])
    assert told.changed == ["emulator : Build the emulator"], told.output
