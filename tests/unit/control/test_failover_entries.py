"""Entries with groups of type fast failover: what a plan installs, and what a switch does with it."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from harness.plants import plant_of
from switch_emulator import Board

from loko.admission.planning import scenario_of
from loko.admission.protection import ProtectedPlan, Protection, failures_of, protect
from loko.admission.schemes import admission_of, variant_of
from loko.control import messages13, wire, wire13
from loko.control.building import failover_mods
from loko.control.entries import Enqueue, Failover, Fields, FlowEntry, Output, failover_entries
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.frame import frame_of
from loko.topology.lab import Lab

MS = 1_000_000
GROUP = Failover((Output(2), Output(3)))
ANY = Fields()
FLOW = Flow("f", "h1-1", "h2-1", 1, 2000, 1e5, 306.0, 306)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return plant_of(tmp_path, nx.cycle_graph(4), [1])


@pytest.fixture
def plan(lab: Lab) -> ProtectedPlan:
    flows = [Flow(f"f{number}", "h1-1", "h2-1", number, 2000, 1e5, 306.0, 306) for number in (1, 2)]
    scenario = scenario_of(flows, entries=100, lab=lab)
    found = protect(
        lab,
        flows,
        lambda: admission_of(lab, variant_of(lab, "loko", None), scenario),
        failures_of(lab, ["cables=1"]),
        protection=Protection.BACKUP,
    )
    return found.with_groups()


def test_a_plan_installs_groups_and_the_paths_behind_them(lab: Lab, plan: ProtectedPlan) -> None:
    entries = failover_entries(lab, plan)
    assert sorted(switch for switch, _ in entries) == sorted(["s1", "s2", "s3", "s4"] * 2)
    (group,) = plan.groups["f1"]
    at_fork = [entry.actions for switch, entry in entries if switch == "s1"]
    assert at_fork == 2 * [(Failover((Output(group.working_port), Output(group.backup_port))),)]
    installed = {hop.switch: hop.output_port for hop in group.installed}
    for switch, entry in entries:
        if switch in installed:
            assert entry.output_port == installed[switch]


def test_flows_with_the_same_ports_share_a_group(plan: ProtectedPlan) -> None:
    kinds = {switch: [message[1] for message in mods] for switch, mods in failover_mods(plan).items()}
    assert kinds["s1"] == [15, 14, 14]
    assert kinds["s2"] == kinds["s3"] == kinds["s4"] == [14, 14]


def test_a_switch_sends_to_the_first_port_that_is_up(lab: Lab) -> None:
    board = Board(config={"quirks": "spec", "openflow_ports": [1, 2, 3, 4], "native_ports": []})
    board.connected(0)
    begin, features, *_ = messages13.session_segments([])
    add = messages13.add_entry(FlowEntry(priority=1, match=ANY, actions=(GROUP,)), 4)
    for number, segment in enumerate((begin, features, wire13.add_group(3, GROUP), add)):
        board.segment((number + 1) * 10 * MS, segment)
    answers = []

    def sent_by(at_ns: int) -> list[int]:
        board.frame(at_ns, 1, frame_of(lab, FLOW))
        board.advance(at_ns + 10 * MS)
        outputs = board.outputs()
        answers.extend(output.data for output in outputs if output.kind == "controller")
        return [output.port for output in outputs if output.kind == "frame"]

    assert sent_by(100 * MS) == [1 << 1]
    board.link(120 * MS, 2, False)
    assert sent_by(130 * MS) == [1 << 2]
    board.link(150 * MS, 2, True)
    assert sent_by(160 * MS) == [1 << 1]
    assert not [answer for answer in answers if answer[1] == 1], "no error"


def test_a_bucket_may_have_a_queue() -> None:
    message = wire13.add_group(1, Failover((Enqueue(2, 7), Enqueue(3, 7))))
    plain = wire13.add_group(1, GROUP)
    assert len(message) == len(plain) + 2 * 8


def test_openflow_1_0_has_no_groups() -> None:
    entry = FlowEntry(priority=1, match=ANY, actions=(GROUP,))
    with pytest.raises(InputError, match=r"no groups; ask for 1\.3"):
        wire.entry_of(entry, cookie=0)
