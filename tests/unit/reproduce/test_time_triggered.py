"""Time-triggered flows over cut-through switches: the delay of a frame, its waiting, host stalls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from loko.control.entries import flow_entry
from loko.document import LABS
from loko.switch_model.generic_switch import GenericSwitch
from loko.topology.lab import load_lab
from loko_testbed.reproduce.facts import fact
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.time_triggered import virtual
from loko_testbed.reproduce.figure_types.time_triggered.compute import live_findings, not_judged
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredCase, TimeTriggeredFigure
from loko_testbed.reproduce.figure_types.time_triggered.trial import (
    NEVER,
    SlotFrameTimes,
    SlotTrial,
    cross_of,
    hosts_of,
)
from loko_testbed.reproduce.figure_types.time_triggered.veths import transmit_live
from loko_testbed.reproduce.figure_types.time_triggered.virtual import (
    half_of_spread_ns,
    never_meet,
    transmit,
    treats_lone_frames_alike,
)
from loko_testbed.simulation.runner import RunError, Stall
from loko_testbed.simulation.traffic import RandomBursts, Releases, Sender, flow_of
from loko_testbed.simulation.virtual import add_sender, lab_network

LAB = load_lab("tssdn")
TABLE2 = experiments()["tssdn/table2"]
TABLE3 = experiments()["tssdn/table3"]
FIG4B = experiments()["tssdn/fig4b"]
FRAME_US = 1.23
"""How long a frame of 1518 bytes occupies a cable of 10 Gbit/s."""
PACKETS = 300
LONGEST_US = fact("tssdn", "tab2_alone/1/max").number
"""The longest delay of 100,000 packets over an idle network, which a few hundred do not reach."""


def delays_us(figure: TimeTriggeredFigure, case: TimeTriggeredCase, packets: int = PACKETS) -> np.ndarray:
    sent = transmit(SlotTrial(figure, case, packets, 1))
    assert sent.came.all()
    return (sent.received_ns - sent.begun_ns) / 1e3


@pytest.mark.parametrize(("name", "table"), [("tssdn/table2", "tab2"), ("tssdn/table3", "tab3")])
def test_every_cell_of_a_table_of_the_paper_is_marked(name: str, table: str) -> None:
    figure = experiments()[name]
    assert isinstance(figure, TimeTriggeredFigure)
    cells = {
        mark.finding: mark.value
        for mark in figure.printed()
        if mark.fact.startswith((f"{table}/", f"{table}_"))
    }
    statistics = ("mean", "deviation", "least", "most")
    assert cells.keys() >= {f"{case.name}_{each}_us" for case in figure.cases for each in statistics}
    assert cells["five_most_us"] == fact("tssdn", f"{table}/5/max").number


def case(**values: object) -> TimeTriggeredCase:
    return TimeTriggeredCase.model_validate({"name": "a", "label": "a", "flows": 1, **values})


def test_an_idle_cut_through_switch_adds_its_header_and_its_latency() -> None:
    switch = LAB.switches["s1"].profile
    flow = flow_of(0, "A1", "B1", rate_bps=1e6, burst_bytes=1518, frame_bytes=1518)
    tables = {"s1": [flow_entry(LAB, flow, 6)], "s2": [flow_entry(LAB, flow, 1)]}
    network = lab_network(LAB, tables, seed=1)
    sends = Releases(instants_ns=np.array([0, 1_000_000]))
    add_sender(network, LAB, Sender.of(0, flow, sends))
    result = network.run(duration_ns=2_000_000, drain_ns=1_000_000)
    header_ns = int(np.ceil((8 + switch.cut_through.header_bytes.value) * 0.8))
    expected_ns = 2 * (header_ns + switch.forwarding.latency_ns.value)
    assert (result.received_ns - result.sent_ns).tolist() == [expected_ns] * 2
    assert expected_ns < 2 * 1_221, "less than storing the frame twice would take"


def test_frames_of_one_slot_wait_for_each_other_and_those_of_their_own_for_nobody() -> None:
    alone = delays_us(TABLE3, case()).mean()
    adjacent = delays_us(TABLE3, case(flows=5)).mean()
    same = delays_us(TABLE3, case(flows=5, adjacent=False))
    assert adjacent == pytest.approx(alone, abs=0.05)
    # Without spread, the last of five waits for four frames, and two on average. Separate hosts wait less.
    assert 1 * FRAME_US < same.mean() - alone < 2 * FRAME_US
    assert same.max() < LONGEST_US + 4 * FRAME_US


def test_priority_waits_for_one_frame_only() -> None:
    plain = delays_us(FIG4B, case(cross_percent=80, cross_burst_frames=8, priority=False), 100)
    first = delays_us(FIG4B, case(cross_percent=80, cross_burst_frames=8), 100)
    assert first.max() <= LONGEST_US + FRAME_US
    assert plain.max() > LONGEST_US + 5 * FRAME_US


@pytest.mark.parametrize("overhead_bytes", [20, -4])
def test_other_traffic_loads_the_cable_as_the_cable_counts_it(overhead_bytes: int) -> None:
    crossed = case(cross_percent=80, cross_burst_frames=8)
    senders = cross_of(SlotTrial(FIG4B, crossed, 1, 1), LAB, 20e6, overhead_bytes=overhead_bytes)
    assert sorted({(sender.source, sender.destination) for sender in senders}) == [
        (f"A{host}", f"B{host}") for host in range(2, 6)
    ]
    load_bps = 0.0
    for sender in senders:
        assert isinstance(sender.sends, RandomBursts)
        assert sender.sends.burst_bytes == 8 * sender.frame_bytes
        load_bps += sender.sends.offered_rate_bps * (sender.frame_bytes + overhead_bytes) / sender.frame_bytes
    assert load_bps == pytest.approx(0.8 * 20e6)


@pytest.mark.parametrize(
    ("adjacent", "lone"), [(True, True), (False, False)], ids=["adjacent slots", "one slot"]
)
def test_frames_that_never_meet_take_what_the_simulator_says(
    monkeypatch: pytest.MonkeyPatch, *, adjacent: bool, lone: bool
) -> None:
    trial = SlotTrial(TABLE2, case(flows=5, adjacent=adjacent), PACKETS, 1)
    decided = []

    def decide(*times_ns: np.ndarray) -> bool:
        decided.append(never_meet(*times_ns))
        return decided[-1]

    monkeypatch.setattr(virtual, "never_meet", decide)
    as_decided = transmit(trial)
    monkeypatch.setattr(virtual, "never_meet", lambda *_: False)
    simulated = transmit(trial)
    assert decided == [lone]
    assert np.array_equal(as_decided.received_ns, simulated.received_ns)


def test_frames_meet_unless_each_has_left_before_the_next_enters() -> None:
    idle_ns = np.array([[10], [20]])
    assert never_meet(np.array([[0, 100], [11, 132]]), idle_ns)
    assert not never_meet(np.array([[0, 100], [10, 132]]), idle_ns), "the first flow's frame takes 10"
    assert not never_meet(np.array([[0, 100], [80, 132]]), idle_ns), "the second's takes 20"
    assert not never_meet(np.array([[40, 100], [11, 132]]), idle_ns), "the second flow's frame comes first"


def test_a_switch_with_memory_or_chance_is_always_simulated() -> None:
    (chip,) = {switch.profile.name: switch.profile for switch in LAB.switches.values()}.values()
    assert isinstance(chip, GenericSwitch)
    for part in ({"lookup": chip.cut_through}, {"forwarding": None}, {"software": chip.cut_through}):
        switches = {
            name: replace(switch, profile=chip.model_copy(update=part))
            for name, switch in LAB.switches.items()
        }
        lab = replace(LAB, switches=switches)
        assert not treats_lone_frames_alike(lab)
    assert treats_lone_frames_alike(LAB)
    assert not treats_lone_frames_alike(load_lab("two-switch"))


def test_in_real_time_a_figure_has_its_own_period_and_lengths() -> None:
    live = FIG4B.in_real_time()
    assert (FIG4B.period_us, FIG4B.cross_frame_bytes[0]) == (100, 64)
    assert (live.period_us, live.cross_frame_bytes[0]) == (10_000, 74)
    assert TABLE3.in_real_time() == TABLE3


def test_hosts_take_what_they_are_said_to() -> None:
    delays = delays_us(TABLE3, case(), 3000)
    hosts = TABLE3.hosts
    assert delays.mean() == pytest.approx(hosts.mean_us, abs=0.03)
    assert delays.std() == pytest.approx(hosts.deviation_us, abs=0.03)
    assert hosts.least_us <= delays.min()


@pytest.mark.parametrize(
    ("figure", "row"),
    [
        (FIG4B, ["fig4a_dpdk/mean", "fig4a_dpdk/standard-deviation"]),
        (TABLE2, ["tab2_alone/1/avg", "tab2_alone/1/std", "tab2_alone/1/min"]),
        (TABLE3, ["tab2_alone/1/avg", "tab2_alone/1/std", "tab2_alone/1/min"]),
    ],
    ids=["fig4b", "table2", "table3"],
)
def test_hosts_are_those_of_a_calibration_fact(figure: TimeTriggeredFigure, row: list[str]) -> None:
    facts = [fact("tssdn", reference) for reference in row]
    assert {stated.role for stated in facts} == {"calibration"}
    given = [figure.hosts.mean_us, figure.hosts.deviation_us, figure.hosts.least_us]
    assert [stated.number for stated in facts] == given[: len(facts)]


@pytest.mark.parametrize(("figure", "packets", "row"), [(FIG4B, 10_000, 10.0), (TABLE2, 100_000, 13.0)])
def test_the_longest_delay_of_so_many_packets_is_the_printed_one(
    figure: TimeTriggeredFigure, packets: int, row: float
) -> None:
    random = np.random.default_rng(1)
    spread_ns = sum(half_of_spread_ns(figure.hosts, random, (100, packets)) for _ in range(2))
    longest_us = figure.hosts.least_us + np.median(spread_ns.max(axis=1)) / 1e3
    assert longest_us == pytest.approx(row, abs=0.5)


def test_the_hosts_of_a_switch_are_sources_those_of_the_other_destinations() -> None:
    assert hosts_of(LAB) == (["A1", "A2", "A3", "A4", "A5"], ["B1", "B2", "B3", "B4", "B5"])


def test_hosts_with_named_interfaces_are_refused_in_real_time_before_anything_is_built() -> None:
    figure = TABLE3.model_copy(update={"lab": str(LABS / "two-switch/server.yml")})
    with pytest.raises(
        RunError, match="server:eth1: in real time each host of this figure has one interface"
    ) as caught:
        transmit_live(SlotTrial(figure, case(), 1, 1))
    assert "\n" not in str(caught.value)


def test_a_frame_met_a_stall_between_its_slot_and_its_arrival() -> None:
    due = np.array([0, 100, 200, 300, 400])
    sent = SlotFrameTimes(
        flow=np.zeros(5, dtype=np.int64),
        due_ns=due,
        begun_ns=due,
        done_ns=due + 10,
        received_ns=np.array([50, 150, 250, NEVER, 450]),
        # Stalls before the second slot, over the third frame, and at the very end of the last frame.
        stalls=(
            Stall(start_ns=450, duration_ns=20),
            Stall(start_ns=60, duration_ns=10),
            Stall(start_ns=190, duration_ns=100),
        ),
    )
    assert sent.stalled.tolist() == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"slot_us": 300}, "longer than the period"),
        ({"modes": ["live"], "cross_frame_bytes": [64], "cases": [case(cross_percent=10)]}, "leave live out"),
        (
            {"cross_frame_bytes": [80], "live_trunk_mbps": None, "cases": [case(cross_percent=10)]},
            "cross traffic needs a cable with a rate",
        ),
        ({"cross_frame_bytes": [], "cases": [case(cross_percent=10)]}, "no length is given"),
        (
            {"modes": ["live"], "live_trunk_mbps": None, "cases": [case(adjacent=False)]},
            "meet on a cable with",
        ),
        ({"hosts": None}, "what hosts take in virtual time is missing"),
        ({"hosts": {"least_us": 7, "mean_us": 6, "deviation_us": 1}}, "mean_us must be above"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_words(change: dict[str, object], said: str) -> None:
    document = {**TABLE3.model_dump(), "cases": [case(flows=5)], **change}
    with pytest.raises(ValidationError, match=said):
        TimeTriggeredFigure.model_validate(document)


@pytest.mark.parametrize(("stalled", "judged"), [(10, True), (11, False)])
def test_a_case_of_which_too_many_frames_met_a_stall_is_not_judged(stalled: int, judged: bool) -> None:
    due = 1000 * np.arange(100)
    sent = SlotFrameTimes(
        flow=np.zeros(100, dtype=np.int64),
        due_ns=due,
        begun_ns=due + 1,
        done_ns=due + 2,
        received_ns=due + 10,
        stalls=tuple(Stall(start_ns=1000 * number, duration_ns=5) for number in range(stalled)),
    )
    findings = live_findings(case(), sent)
    assert findings["live_a_stalled_percent"] == stalled
    assert ("live_a_mean_us" in findings) is judged
    notes = not_judged(TABLE3.model_copy(update={"cases": [case()]}), {"a": sent})
    assert [note.text for note in notes] == (
        []
        if judged
        else ["a: not judged: 11 % of the frames met a stall of this machine, and at most 10 % may."]
    )


def test_a_case_may_have_its_own_length_and_period() -> None:
    figure = experiments()["tssdn/frequencies"]
    rare, often = (figure.of(case) for case in figure.cases[:2])
    assert (rare.frame_bytes, rare.period_us) == (64, 10_000)
    assert (often.frame_bytes, often.period_us) == (figure.frame_bytes, figure.period_us)
    sent = transmit(SlotTrial(rare, figure.cases[0], 3, 1))
    assert np.diff(sent.due_ns).tolist() == [10_000_000] * 2


def test_slots_must_fit_into_the_period_of_their_case() -> None:
    figure = experiments()["tssdn/frequencies"]
    values = figure.model_dump() | {"cases": [case(flows=5, period_us=70).model_dump()]}
    with pytest.raises(ValidationError, match="5 slots of 15 us are longer than the period"):
        TimeTriggeredFigure.model_validate(values)
