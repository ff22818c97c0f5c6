"""The role host_tuning on a throw-away machine with a network of its own."""

from __future__ import annotations

import json
import re

import pytest
from live_harness import needs_root
from throwaway import Throwaway

pytestmark = [pytest.mark.namespaces, needs_root, pytest.mark.xdist_group("live")]

# A setting that each network namespace has of its own: the machine that runs the tests keeps its own.
SETTING = "net.ipv4.ip_default_ttl"
VARIABLES = {
    "host_tuning_kernel": {SETTING: 77},
    "host_tuning_interfaces": ["card0"],
    "host_tuning_isolated_cpus": "63",
    "capture_interfaces": ["card0"],
}
PLAY = ["playbooks/provision.yml", "--tags", "host_tuning,capture", "-e", json.dumps(VARIABLES)]
CARDS = "ip link add card0 type veth peer name card1"
SHOW = f"sysctl -n {SETTING} >/mnt/shared/{{0}}; ethtool -k card0 >>/mnt/shared/{{0}}"


def test_it_sets_what_can_be_set_tells_what_needs_a_reboot_and_then_changes_nothing(tmp_path):
    machine = Throwaway(tmp_path)
    told, done, again = machine.plays(
        CARDS, [*PLAY, "--check"], SHOW.format("before"), PLAY, SHOW.format("after"), PLAY
    )
    changes = [
        "host_tuning : Set the kernel's settings",
        "host_tuning : Switch the network cards' offloads off",
    ]
    assert told.changed == done.changed == changes, told.output + done.output
    assert (again.status, again.changed) == (0, []), again.output
    before, after = ((machine.shared / name).read_text() for name in ("before", "after"))
    assert not before.startswith("77\n")
    assert "generic-segmentation-offload: on" in before
    assert after.startswith("77\n")
    assert "generic-segmentation-offload: off" in after
    assert "NEEDS A REBOOT: add 'isolcpus=63 nohz_full=63 rcu_nocbs=63'" in done.messages()
    assert "card0: has no clock; the kernel stamps" in done.messages()


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"host_tuning_interfaces": ["nothere"]}, "nothere: .*'ip -brief link' lists"),
        (
            {"host_tuning_kernel": {"kernel.no_such_thing": 1}},
            "this kernel has no setting kernel.no_such_thing",
        ),
    ],
)
def test_what_is_not_there_is_named_in_one_line(variables, complaint, tmp_path):
    play = ["playbooks/provision.yml", "--tags", "host_tuning", "-e", json.dumps(variables)]
    [refused] = Throwaway(tmp_path).plays(play)
    assert refused.status == 2
    [said] = [task["msg"] for task in refused.tasks if task["outcome"] == "failed"][:1]
    assert re.search(complaint, refused.output), refused.output
    assert "\n" not in said
