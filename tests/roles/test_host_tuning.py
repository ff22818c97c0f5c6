"""The role `host_tuning`, and what `capture` reports on cards, on a disposable root with its network."""

from __future__ import annotations

import json
import re

import pytest
from disposable_root import DisposableRoot
from live_harness import needs_namespaces

pytestmark = [pytest.mark.disposable_root, needs_namespaces, pytest.mark.timeout(900)]

# A setting that is separate in each network namespace, so the machine that runs the tests keeps its own.
SETTING = "net.ipv4.ip_default_ttl"
VARIABLES = {
    "host_tuning_kernel": {SETTING: 77},
    "host_tuning_interfaces": ["card0"],
    "host_tuning_isolated_cpus": "63",
    "capture_interfaces": ["card0"],
}
CARDS = "ip link add card0 type veth peer name card1"
SHOW = f"sysctl -n {SETTING} >/mnt/shared/{{0}}; ethtool -k card0 >>/mnt/shared/{{0}}"


def play(**variables):
    chosen = json.dumps(VARIABLES | variables)
    return ["playbooks/provision.yml", "--tags", "host_tuning,capture", "-e", chosen]


def test_it_sets_what_can_be_set_tells_what_needs_a_reboot_and_then_changes_nothing_more(tmp_path):
    machine = DisposableRoot(tmp_path)
    told, done, again = machine.plays(
        CARDS,
        [*play(), "--check"],
        SHOW.format("before"),
        play(),
        SHOW.format("after"),
        play(host_tuning_interfaces=["card0", "nothere"]),
    )
    changes = [
        "host_tuning : Set the kernel's settings",
        "host_tuning : Switch the network cards' offloads off",
    ]
    assert told.changed == done.changed == changes, told.output + done.output
    before, after = ((machine.shared / name).read_text() for name in ("before", "after"))
    assert not before.startswith("77\n")
    assert "generic-segmentation-offload: on" in before
    assert after.startswith("77\n")
    assert "generic-segmentation-offload: off" in after
    assert "NEEDS A REBOOT: add 'isolcpus=63 nohz_full=63 rcu_nocbs=63'" in done.messages()
    assert "card0: has no clock; the kernel stamps" in done.messages()
    assert "changed: [" not in again.output, again.output
    assert again.status == 2
    assert re.search("nothere: .*'ip -brief link'", again.output), again.output
