"""Switches without OpenFlow in plans that survive failures: nothing at them changes after a failure."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed

from loko.admission.port_queues import PortAdmission
from loko.admission.protection import MoveTiming, ProtectedPlan, Protection, Survival, failures_of
from loko.control.managed_switches import network_settings
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, load_lab

TIMING = MoveTiming(detection_ns=0, changes_per_s=20)
VLANS = 12


def mixed_ring(folder: Path, *, vlans: int = VLANS) -> Lab:
    """Write a ring of six switches with two chords, of which s0 and s3 have no OpenFlow."""
    ring_of_managed(folder, managed_switch(OWN_BUFFERS, queues=4, vlans=vlans), switches=6, hosts_each=2)
    lines = (folder / "lab.yml").read_text().splitlines()
    for number in (1, 2, 4, 5):
        lines = [
            line.replace("./switch.toml", "ideal-1g") if line.startswith(f"  s{number}:") else line
            for line in lines
        ]
    lines += ['  - {a: "s1:5", b: "s4:5"}', '  - {a: "s0:5", b: "s2:5"}']
    (folder / "lab.yml").write_text("\n".join(lines) + "\n")
    return load_lab(str(folder))


def planned(lab: Lab, protection: Protection, *, duplicated: int = 0, flows: int = 60) -> ProtectedPlan:
    choice = random.Random(7)
    pairs = [choice.sample(list(lab.hosts), 2) for _ in range(flows)]
    requested = [
        Flow(f"f{number}", source, destination, 1000 + number, 2000, 1e5, 306.0, 306)
        for number, (source, destination) in enumerate(pairs)
    ]
    survival = Survival(
        failures=failures_of(lab, ["cables=1"]),
        protection=protection,
        duplicated=[flow.id for flow in requested[:duplicated]],
    )
    scenario = loko_scenario(entries=4096, packet_sizes_bytes=(306,))
    return survival.plan(lab, requested, lambda: PortAdmission(lab, scenario))


@pytest.mark.parametrize("protection", list(Protection))
def test_no_switch_learns_where_a_destination_is_from_its_own_frames(
    protection: Protection, tmp_path: Path
) -> None:
    """A switch without OpenFlow learns where hosts are, and a flow from a host may cross one to it."""
    sending, receiving = (
        defaultdict[tuple[str, int], set[str]](set),
        defaultdict[tuple[str, int], set[str]](set),
    )
    for admitted in planned(mixed_ring(tmp_path), protection, duplicated=15).on_all_paths.accepted:
        for hop in admitted.path:
            if hop.switch in {"s0", "s3"}:
                assert admitted.vlan is not None
                sending[hop.switch, admitted.vlan].add(admitted.flow.source)
                receiving[hop.switch, admitted.vlan].add(admitted.flow.destination)
    assert sending
    assert all(sending[place].isdisjoint(receiving[place]) for place in sending)


@pytest.mark.parametrize("protection", list(Protection))
@pytest.mark.parametrize("duplicated", [0, 15])
def test_a_vlan_leaves_each_switch_by_one_port_on_all_paths(
    protection: Protection, duplicated: int, tmp_path: Path
) -> None:
    found = planned(mixed_ring(tmp_path), protection, duplicated=duplicated)
    ports: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    crossing = 0
    for flow in found.flows.values():
        assert {backup.vlan for backup in flow.backups.values()} <= {flow.working.vlan}
        further = [*flow.backups.values(), *([] if flow.duplicate is None else [flow.duplicate])]
        for admitted in (flow.working, *further):
            for hop in admitted.path:
                if hop.switch in {"s0", "s3"}:
                    assert admitted.vlan is not None
                    ports[hop.switch, admitted.vlan].add(hop.output_port)
                    crossing += admitted is not flow.working
    assert crossing > 10, "else nothing is shown"
    assert all(len(each) == 1 for each in ports.values())
    for name in ("s0", "s3"):
        assert sum(switch == name for switch, _ in ports) <= VLANS - 1, "one is for other traffic"


def test_no_failure_changes_a_table_without_openflow(tmp_path: Path) -> None:
    found = planned(mixed_ring(tmp_path), Protection.BACKUP)
    changed = {switch for recovery in found.recoveries(TIMING) for switch in recovery.changes}
    assert changed
    assert changed.isdisjoint({"s0", "s3"})
    for recovery in found.recoveries(TIMING):
        for flow_id in recovery.moved:
            backup = found.flows[flow_id].backups[recovery.failure.name]
            own = {hop.switch for hop in found.flows[flow_id].working.path}
            fixed = {hop for hop in backup.path if hop.switch in {"s0", "s3"} and hop.switch not in own}
            assert fixed <= set(found.preinstalled.get(flow_id, ()))


def test_a_flow_that_no_switch_moves_is_refused(tmp_path: Path) -> None:
    found = planned(mixed_ring(tmp_path), Protection.BACKUP)
    (refusal, *_) = [refusal for refusal in found.refused if refusal.flow.source in {"h0", "h1"}]
    assert "no path is left to which a switch with OpenFlow could move it" in refusal.hint
    assert f"--duplicate {refusal.flow.id}" in refusal.hint
    duplicated = planned(mixed_ring(tmp_path), Protection.DUPLICATE)
    assert refusal.flow.id in duplicated.flows


def test_few_vlans_refuse_flows(tmp_path: Path) -> None:
    few, many = (planned(mixed_ring(tmp_path, vlans=vlans), Protection.DUPLICATE) for vlans in (3, VLANS))
    assert len(few.flows) < len(many.flows)
    assert "VLANs" in {refusal.quantity for refusal in few.refused}


def test_all_paths_are_configured_beside_switches_with_openflow(tmp_path: Path) -> None:
    """A switch without OpenFlow sends each flow on along each of its paths, by the VLAN of its host."""
    found = planned(mixed_ring(tmp_path), Protection.BACKUP, duplicated=15)
    settings = network_settings(found.on_all_paths)
    assert {switch.name for switch in settings.switches} == {"s0", "s3"}
    marked = {(marking.flow, marking.vlan) for marking in settings.flows}
    output = {(switch.name, vlan.vlan): vlan.output for switch in settings.switches for vlan in switch.vlans}
    crossing = 0
    for flow_id, flow in found.flows.items():
        copies = [] if flow.duplicate is None else [(f"{flow_id} (second copies)", flow.duplicate)]
        of_flow = [(flow_id, flow.working), *((flow_id, backup) for backup in flow.backups.values()), *copies]
        for name, admitted in of_flow:
            for hop in admitted.path:
                if hop.switch in {"s0", "s3"}:
                    assert admitted.vlan is not None
                    assert (name, admitted.vlan) in marked
                    assert output[hop.switch, admitted.vlan] == hop.output_port
                    crossing += 1
    assert crossing > 50
    behind = set(settings.getting_tags)
    assert behind
    assert behind.isdisjoint({"h0", "h1", "h6", "h7"}), "these are at switches that take the tag off"
