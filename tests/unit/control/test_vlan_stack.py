"""Source routing by stacks of VLAN tags, on emulated boards with the entries from the controller."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import switch_emulator
from typer.testing import CliRunner

from loko.admission import Admitted, Refusal
from loko.control import messages
from loko.control.entries import UNTAGGED, Fields, FlowEntry, Output
from loko.control.unsafe_entries import refuse_unsafe_entries
from loko.control.vlan_stack import (
    StackAdmission,
    stack_entries,
    stack_of,
    stack_scenario,
    tagged_flow,
    tagged_frame,
)
from loko.document import InputError
from loko.switch_model.allocation import scheme_named
from loko.switch_model.device import Profile
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, load_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, longest_path, shortest_path
from loko_testbed.cli.main import app
from loko_testbed.simulation.traffic import flow_of
from loko_testbed.simulation.virtual import lab_network

LAB = load_lab("two-switch")
RING = load_lab("ring")
US = 1_000
MS = 1_000_000
S = 1_000_000_000
BEGIN_NS = 3 * S
"""By then all boards have their tables."""


def flow(number: int = 0, source: str = "H1", destination: str = "H3", **values: float) -> Flow:
    fields = {"rate_bps": 1e5, "burst_bytes": 306.0, "frame_bytes": 306, **values}
    return flow_of(number, source, destination, called="f", **fields)  # type: ignore[arg-type]


def admission(lab: Lab, flows: Sequence[Flow], scheme: str = "fifth-rate") -> StackAdmission:
    scenario = stack_scenario(lab, flows, OpenFlow.V1_3)
    return StackAdmission(lab, allocations_of(lab, scheme_named(scheme), scenario))


class Cables:
    """Boards that forward by tags, cabled as in their lab; records what each host receives."""

    def __init__(self, lab: Lab) -> None:
        self.network = lab_network(lab, stack_entries(lab), seed=0, openflow=OpenFlow.V1_3)
        self.came: list[tuple[str, bytes, int]] = []

    def send(self, host: str, frame: bytes, at_ns: int) -> None:
        """Send a frame from a host. Calls must be in order of time."""
        self.network.send(host, frame, at_ns)

    def advance(self, to_ns: int) -> None:
        self.network.advance(to_ns)
        self.came += [
            (host, output.data, output.at_ns)
            for host, output in self.network.outputs()
            if output.kind == "frame"
        ]


def numbered(lab: Lab, flow: Flow, number: int) -> bytes:
    return frame_of(lab, flow)[:-4] + number.to_bytes(4, "big")


# Frames through boards.


@pytest.mark.parametrize("frame_bytes", [68, 306, 1510])
@pytest.mark.parametrize("ends", [("H1", "H3"), ("H1", "H2"), ("H4", "H1")])
def test_each_board_takes_off_its_tag_and_the_host_gets_the_frame(
    ends: tuple[str, str], frame_bytes: int
) -> None:
    sent, path = flow(0, *ends, frame_bytes=frame_bytes), shortest_path(LAB, *ends)
    cables, frame = Cables(LAB), frame_of(LAB, flow(0, *ends, frame_bytes=frame_bytes))
    cables.send(sent.source, tagged_frame(frame, path), BEGIN_NS)
    cables.advance(BEGIN_NS + S)
    assert [(host, data) for host, data, _ in cables.came] == [(sent.destination, frame)]


def test_a_path_of_several_switches_around_the_ring() -> None:
    """Eight tags, one for each switch."""
    ends = "h1a", "h8b"
    sent, path = flow(0, *ends), shortest_path(RING, *ends)
    assert len(path) == 8
    cables, frame = Cables(RING), frame_of(RING, sent)
    cables.send(sent.source, tagged_frame(frame, path), BEGIN_NS)
    cables.advance(BEGIN_NS + S)
    assert [(host, data) for host, data, _ in cables.came] == [(sent.destination, frame)]


def test_a_frame_without_a_tag_goes_nowhere() -> None:
    cables = Cables(LAB)
    cables.send("H1", frame_of(LAB, flow()), BEGIN_NS)
    cables.advance(BEGIN_NS + S)
    assert cables.came == []


@pytest.mark.parametrize(
    ("scheme", "sizes"), [("full-rate", (306,)), ("fifth-rate", (306,)), ("fifth-rate", (100, 400))]
)
def test_no_frame_is_later_than_its_guarantee(scheme: str, sizes: Sequence[int]) -> None:
    """Admit as many flows as fit; all bursts start at once, then each continues as its bucket allows."""
    pairs = [("H1", "H3"), ("H3", "H1"), ("H2", "H4"), ("H4", "H2"), ("H1", "H2")]
    asked = [
        flow(
            number,
            *pairs[number % 5],
            rate_bps=2e5,
            frame_bytes=sizes[number % len(sizes)],
            burst_bytes=sizes[number % len(sizes)],
        )
        for number in range(20)
    ]
    control = admission(LAB, asked, scheme)
    granted = [answer for answer in map(control.request, asked) if isinstance(answer, Admitted)]
    assert granted
    cables = Cables(LAB)
    free_ns = dict.fromkeys(LAB.hosts, BEGIN_NS)
    sent: dict[bytes, tuple[int, float]] = {}
    leaving: list[tuple[int, str, bytes]] = []
    for turn in range(4):
        for number, grant in enumerate(granted):
            own = grant.flow
            frame = numbered(LAB, own, 100 * turn + number)
            on_wire = tagged_frame(frame, grant.path)
            due_ns = BEGIN_NS + round(turn * own.frame_bytes * 8e9 / own.rate_bps)
            at_ns = max(due_ns, free_ns[own.source])
            free_ns[own.source] = at_ns + (len(on_wire) + 24) * 80
            sent[frame] = at_ns, grant.guarantee_ns
            leaving.append((at_ns, own.source, on_wire))
    for at_ns, host, on_wire in sorted(leaving):
        cables.send(host, on_wire, at_ns)
    cables.advance(BEGIN_NS + 2 * S)
    assert {frame for _, frame, _ in cables.came} == sent.keys()
    used = [(at_ns - sent[frame][0]) / sent[frame][1] for _, frame, at_ns in cables.came]
    assert 0.1 < max(used) <= 1


def test_in_openflow_1_0_the_board_takes_each_tag_for_any_other() -> None:
    """Why that version is refused (quirk 62): the frame leaves by the port of the first entry."""
    board, at_ns = switch_emulator.Board(), S
    board.connected(at_ns)
    for data in messages.session_segments(stack_entries(LAB)["s1"]):
        at_ns += 10 * MS
        board.segment(at_ns, data)
    board.advance(at_ns)
    board.outputs()
    frame = tagged_frame(frame_of(LAB, flow()), [Hop(switch="s1", output_port=3)])
    board.frame(2 * S, 2, frame)
    board.advance(2 * S + 10 * MS)
    (left,) = [output.port for output in board.outputs() if output.kind == "frame"]
    assert left != 1 << 2


# Tables and limits.


@pytest.mark.parametrize("lab", [LAB, RING], ids=["two-switch", "ring"])
def test_tables_have_an_entry_for_each_port_whatever_flows_there_are(lab: Lab) -> None:
    for name, table in stack_entries(lab).items():
        assert [entry.output_port for entry in table] == [port for port, _ in lab.outgoing_cables(name)]
        assert len({entry.match for entry in table}) == len(table)
        refuse_unsafe_entries(lab.switches[name], OpenFlow.V1_3, table)
        with pytest.raises(InputError, match=rf"^{name}: in OpenFlow 1.0 it takes each VLAN tag"):
            refuse_unsafe_entries(lab.switches[name], OpenFlow.V1_0, table)


def test_a_flow_counts_with_the_tags_that_it_leaves_its_host_with() -> None:
    control, asked = admission(LAB, [flow()]), flow()
    granted = control.request(asked)
    assert isinstance(granted, Admitted)
    assert granted.flow == asked
    assert granted.bursts_bytes[0] == pytest.approx(306)
    assert tagged_flow(asked, 2).frame_bytes == 314
    assert control.usage("s1").used("burst") == pytest.approx(314)
    assert control.usage("s2").used("rate") == pytest.approx(1e5 * 314 / 306)
    assert [share.quantity for share in control.usage("s1").shares] == ["rate", "burst"]
    control.release("f0", now_ns=0)
    control.advance(60 * S)
    assert control.usage("s1").used("burst") == 0


def test_tables_do_not_limit_the_number_of_flows() -> None:
    flows = [flow(number, rate_bps=1.0, burst_bytes=64, frame_bytes=64) for number in range(20)]
    control = admission(LAB, flows)
    most = control.usage("s1").share("burst").allowed
    assert sum(isinstance(control.request(flow), Admitted) for flow in flows) == min(20, int(most // 72))
    assert most // 72 > len(stack_entries(LAB)["s1"])


@pytest.mark.parametrize(("frame_bytes", "fits"), [(1510, True), (1511, False), (1518, False)])
def test_a_frame_that_its_tags_make_too_long_is_refused(frame_bytes: int, *, fits: bool) -> None:
    too_long = flow(frame_bytes=frame_bytes, burst_bytes=frame_bytes, rate_bps=1e4)
    answer = admission(LAB, [too_long]).check(too_long)
    if fits:
        assert isinstance(answer, Admitted)
    else:
        assert isinstance(answer, Refusal)
        assert str(answer) == (
            f"f0: frame with its tags at s1: {frame_bytes} used + 8 requested > 1518 bytes allowed"
        )


def test_a_longer_path_than_planned_for_is_refused() -> None:
    hosts = list(RING.hosts)
    long_way = shortest_path(RING, hosts[0], hosts[1])
    control = admission(RING, [flow(0, hosts[0], hosts[1])])
    control._most_tags = len(long_way) - 1
    answer = control.check(flow(0, hosts[0], hosts[1]))
    assert isinstance(answer, Refusal)
    assert f"tags at {long_way[0].switch}" in str(answer)
    assert longest_path(RING) >= len(long_way)


def test_stack_is_outermost_first() -> None:
    path = [Hop(switch="s1", output_port=3), Hop(switch="s2", output_port=1)]
    assert stack_of(path) == (4, 2)
    assert (
        tagged_frame(bytes(range(14)), path).hex()
        == "000102030405060708090a0b" + "81000004" + "81000002" + "0c0d"
    )


# The command.


def call(*arguments: str, folder: Path, **values: object):
    listed = [{**flow(number)._asdict(), **values} for number in range(3)]
    (folder / "flows.json").write_text(json.dumps(listed))
    return CliRunner().invoke(app, ["plan", "two-switch", str(folder / "flows.json"), *arguments])


STACKS = ("--forwarding", "vlan-stack", "--openflow", "1.3")


def test_plan_shows_both_ways(tmp_path: Path) -> None:
    done = call(*STACKS, "--json", folder=tmp_path)
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert (told["forwarding"], told["scheme"]) == ("vlan-stack", "fifth-rate, vlan-stack")
    assert told["entries"] == {"s1": 3, "s2": 3}
    assert told["per_flow"]["entries"] == {"s1": 3, "s2": 3}
    (assumption,) = told["assumptions"]
    assert assumption.startswith(
        "rests on: frames reach the CPU of zodiac-fx with VLAN tags (cpu_port_tags = "
    )
    by_stacks, by_flows = told["accepted"][0], told["per_flow"]["accepted"][0]
    assert by_stacks["guarantee_ns"] < by_flows["guarantee_ns"]
    done = call(*STACKS, folder=tmp_path)
    assert (
        "entries of a switch: 3, whatever the flows; with one for each flow 3, filled up to 17" in done.output
    )
    assert done.output.splitlines().count(assumption) == 1
    done = call("--openflow", "1.3", folder=tmp_path)
    assert done.exit_code == 0
    assert "rests on" not in done.output


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("--forwarding", "vlan-stack"),
            "s1: in OpenFlow 1.0 it takes each VLAN tag for any other",
        ),
        ((*STACKS, "--scheme", "packets"), "--forwarding vlan-stack: scheme packets does not know of tags"),
        ((*STACKS, "--allocation", "optimised"), "--forwarding vlan-stack: allocation optimised"),
        ((*STACKS, "--padding", "3"), "--forwarding vlan-stack: says nothing with --padding"),
    ],
)
def test_what_does_not_go_with_stacks_is_one_line(arguments, error, tmp_path: Path) -> None:
    done = call(*arguments, folder=tmp_path)
    assert done.exit_code == 2
    assert done.output.startswith(f"error: {error}")
    assert len(done.output.splitlines()) == 1


def test_a_port_to_the_cpu_that_removes_tags_is_refused() -> None:
    switch = LAB.switches["s1"]
    kept = switch.profile
    assert isinstance(kept, Profile)
    integrated = kept.integrated_switch.model_copy(update={"cpu_port_tags": "removed"})
    removes = replace(switch, profile=kept.model_copy(update={"integrated_switch": integrated}))
    untagged, by_vid, by_pcp = (
        FlowEntry(priority=1, match=match, actions=(Output(1),))
        for match in (Fields(dl_vlan=UNTAGGED), Fields(dl_vlan=3), Fields(dl_vlan_pcp=3))
    )
    refuse_unsafe_entries(removes, OpenFlow.V1_3, [untagged])
    error = (
        "s1: the port to its CPU removes VLAN tags (cpu_port_tags in profile 'zodiac-fx'), so no entry"
        " matches one; forward without tags"
    )
    for table in (stack_entries(LAB)["s1"], [untagged, by_vid], [by_pcp]):
        with pytest.raises(InputError, match=f"^{re.escape(error)}$"):
            refuse_unsafe_entries(removes, OpenFlow.V1_3, table)


def test_frames_that_are_too_long_are_told(tmp_path: Path) -> None:
    done = call(*STACKS, "--quiet", folder=tmp_path, frame_bytes=1518, burst_bytes=1518)
    assert done.exit_code == 1
    done = call(*STACKS, folder=tmp_path, frame_bytes=1518, burst_bytes=1518)
    assert "f0: frame with its tags at s1: 1518 used + 8 requested > 1518 bytes allowed" in done.output
