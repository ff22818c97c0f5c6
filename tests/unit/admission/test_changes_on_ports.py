"""Sets that change on switch chips: what a released flow has sent may still meet flows that came later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from switch_emulator import Network

from loko.admission import Admitted, Refusal
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues import admission as port_admission
from loko.admission.residual_backlog import AdmissionClock
from loko.control.dialect import DIALECTS
from loko.control.driver import OWN_MARK, Driver
from loko.service.admitter import SchemeAdmitter
from loko.service.flow_manager import FlowManager
from loko.service.outcome import FlowState, StoredFlow
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab
from loko_testbed.reproduce.studies.random_sets import campaign_seed
from loko_testbed.simulation.worst_case.changes import ignore_released
from loko_testbed.simulation.worst_case.delivery import (
    DeliveryResult,
    judge_delivery,
    timed_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.port_changes import LongLine, PlannedChange, plan_changes
from loko_testbed.simulation.worst_case.port_trial import changing_port_trial

MS = 1_000_000


def line_of(chips: int, *, target_ns: float | None = 400_000.0) -> LongLine:
    return LongLine(
        chips=chips,
        fan=4,
        profile="ideal-1g",
        frame_bytes=1518,
        target_ns=target_ns,
        leaver=0.9,
        across=0.9,
        newcomer=0.95,
    )


def outcome(line: LongLine, *, forgets: bool = False) -> tuple[PlannedChange, DeliveryResult]:
    lab = line.lab()
    admission = line.admission(lab)
    changed = plan_changes(line, ignore_released(admission) if forgets else admission, lab, Random(1))
    records = transmit(
        changed.case,
        timed_senders(changed.case, changed.history.offers()),
        seed=1,
        duration_ns=changed.until_ns,
    )
    return changed, judge_delivery(changed.case, records)


@pytest.mark.parametrize(
    ("line", "frames"),
    [(line_of(8), 282), (line_of(12), 394), (line_of(8, target_ns=None), 9052)],
    ids=["eight chips", "twelve chips", "a room of 1,000 frames"],
)
def test_a_newcomer_is_not_late_behind_a_flow_that_has_left(line: LongLine, frames: int) -> None:
    """Flows that come after a release hold its frames up, and the newcomer must wait for these."""
    changed, verdict = outcome(line)
    assert len(changed.newcomers) == 1
    assert (verdict.packets, verdict.lost, verdict.events) == (frames, 0, ())
    assert not verdict.broken


def with_cables(lab: Lab, cable_ns: int) -> Lab:
    """Return the lab planned for cables that take so long."""
    switches = {}
    for name, switch in lab.switches.items():
        tolerance = switch.profile.tolerance
        longest = tolerance.cable_ns.model_copy(update={"value": cable_ns})
        update = {"tolerance": tolerance.model_copy(update={"cable_ns": longest})}
        switches[name] = replace(switch, profile=switch.profile.model_copy(update=update))
    return replace(lab, switches=switches)


class LongCables:
    """A simulated network whose cables take time, but for those to receivers, which no guarantee contains."""

    cable_ns = 200_000

    def __init__(self, *, seed: int) -> None:
        self.network = Network(seed=seed)

    def connect(self, a: str, a_port: int, b: str, b_port: int, *, rate_bps: float) -> None:
        cable_ns = 0 if a.startswith(("sink", "destination")) else self.cable_ns
        self.network.connect(a, a_port, b, b_port, rate_bps=rate_bps, propagation_ns=cable_ns)

    def __getattr__(self, name: str) -> object:
        return getattr(self.network, name)


def test_a_newcomer_is_not_late_behind_frames_that_were_long_on_cables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A released flow counts while its frames are on cables, too."""
    monkeypatch.setattr("switch_emulator.Network", LongCables)
    line = replace(line_of(8), across=0.02, idle_ns=4_000 + LongCables.cable_ns)
    lab = with_cables(line.lab(), LongCables.cable_ns)
    changed = plan_changes(line, line.admission(lab), lab, Random(1))
    assert len(changed.newcomers) == 1
    sent = timed_senders(changed.case, changed.history.offers())
    verdict = judge_delivery(changed.case, transmit(changed.case, sent, seed=1, duration_ns=changed.until_ns))
    assert not verdict.broken


def test_entries_stay_while_frames_are_on_cables() -> None:
    line = line_of(8)
    admission = line.admission(with_cables(line.lab(), LongCables.cable_ns))
    answer = admission.request(flow(1, "source", "destination", 29))
    assert isinstance(answer, Admitted)
    assert admission.drain_time_ns("f1") >= answer.guarantee_ns


def test_a_rule_that_forgets_a_released_flow_at_once_makes_it_late() -> None:
    """Shows that the test above can fail."""
    _, verdict = outcome(line_of(8), forgets=True)
    assert verdict.worst > 1.1


@pytest.mark.parametrize("seed", [campaign_seed(1, 4), campaign_seed(1, 20)])
def test_the_campaign_notices_a_rule_that_fixes_the_time_at_the_release(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under theorem 2, the same flows and instants make nothing late."""
    assert not changing_port_trial(seed).verdict.broken
    passages_ns: dict[str, int] = {}

    def gone_ns(
        books: port_admission._Books, leaver: port_admission._Leaver, _ways_ns: Mapping[str, float]
    ) -> int:
        counted, bounds = leaver.counted, books.network.bounds
        # First asked before anything else is admitted.
        passage_ns = passages_ns.setdefault(
            counted.flow_id, sum(bounds[step.server] for step in counted.steps)
        )
        busy_ns = max(books.network.busy_ns(step.server) for step in counted.steps)
        return AdmissionClock.after(leaver.sent_ns, passage_ns + busy_ns)

    monkeypatch.setattr(port_admission._PortState, "_forgotten_ns", gone_ns)
    verdict = changing_port_trial(seed).verdict
    assert len(verdict.broken) == 4
    assert verdict.worst > 1.05


def flow(number: int, source: str, destination: str, frames: int) -> Flow:
    return Flow(f"f{number}", source, destination, 5000 + number, 6000, 1e3, float(frames * 1518), 1518)


def beside_a_released_flow() -> tuple[PortAdmission, Flow]:
    """Return a line of eight chips that a flow has left at 0, and one that does not fit beside it."""
    line = line_of(8)
    admission = line.admission(line.lab())
    assert isinstance(admission.request(flow(1, "source", "destination", 29)), Admitted)
    for place in range(3):
        assert isinstance(admission.request(flow(10 + place, f"fan7x{place}", "destination", 7)), Admitted)
    admission.release("f1", now_ns=0)
    return admission, flow(2, "newcomer", "destination", 30)


def waiting_ms(answer: Admitted | Refusal) -> int:
    assert isinstance(answer, Refusal)
    assert answer.suggestion.wait_ms is not None
    return answer.suggestion.wait_ms


def test_the_advice_to_wait_is_true_and_grows_with_the_delays_of_the_path() -> None:
    """Nothing else comes: the newcomer fits when it was told, and not 1 ms before. Others come: later."""
    admission, newcomer = beside_a_released_flow()
    told_ms = waiting_ms(admission.check(newcomer))
    admission.advance((told_ms - 1) * MS)
    assert isinstance(admission.check(newcomer), Refusal)
    admission.advance(told_ms * MS)
    assert isinstance(admission.check(newcomer), Admitted)

    admission, newcomer = beside_a_released_flow()
    for chip in range(7):
        for place in range(4):
            crossing = flow(100 + 10 * chip + place, f"fan{chip}x{place}", f"sink{chip + 1}", 7)
            assert isinstance(admission.request(crossing), Admitted)
    later_ms = waiting_ms(admission.check(newcomer))
    assert later_ms > told_ms
    admission.advance((later_ms - 1) * MS)
    assert isinstance(admission.check(newcomer), Refusal)
    admission.advance(later_ms * MS)
    assert isinstance(admission.check(newcomer), Admitted)


def test_the_time_until_no_frame_is_on_its_way_holds_whatever_is_admitted_meanwhile() -> None:
    """The service removes entries after that time, so it must cover all delays up to the targets."""
    line = line_of(8)
    admission = line.admission(line.lab())
    assert isinstance(admission.request(flow(1, "source", "destination", 29)), Admitted)
    before_ns = admission.drain_time_ns("f1")
    for chip in range(7):
        for place in range(4):
            crossing = flow(100 + 10 * chip + place, f"fan{chip}x{place}", f"sink{chip + 1}", 7)
            assert isinstance(admission.request(crossing), Admitted)
    bounds = admission.bounds_ns
    on_its_path = sum(bounds[f"s{chip}:2"] for chip in range(7)) + bounds["s7:4"]
    assert before_ns >= on_its_path
    assert admission.drain_time_ns("f1") == before_ns


def test_after_a_restart_a_released_flow_still_counts_on_its_hosts_cable() -> None:
    """Frames of a flow that stays may have waited behind the released one: this adds to their jitter."""
    line = line_of(8)
    before, again = line.admission(line.lab()), line.admission(line.lab())
    staying = flow(2, "source", "destination", 2)
    answer = before.request(flow(1, "source", "destination", 29))
    assert isinstance(answer, Admitted)
    assert isinstance(before.request(staying), Admitted)
    before.release("f1", now_ns=0)
    backlogs = {
        server: backlog
        for server in before.servers(answer)
        if (backlog := before.residual_backlog(server)) is not None
    }
    assert backlogs.keys() == {"source", *(f"s{chip}:2" for chip in range(7)), "s7:4"}
    assert isinstance(again.request(staying), Admitted)
    again.restore_backlogs(backlogs, now_ns=0)
    assert again.drain_time_ns("f2") >= before.drain_time_ns("f2")
    again.advance(1_000 * MS)
    assert [again.residual_backlog(server) for server in backlogs] == [None] * len(backlogs)
    assert again.drain_time_ns("f2") < before.drain_time_ns("f2")


def test_a_removal_that_a_restart_repeats_waits_for_frames_behind_those_of_released_flows() -> None:
    """Its entries stay until the cable of its host has carried what came before."""
    line = line_of(8)
    lab, admission = line.lab(), line.admission(line.lab())
    leaves = flow(2, "source", "destination", 2)
    answer = admission.check(leaves)
    assert isinstance(answer, Admitted)
    cable_ns = 3_000_000.0
    manager = FlowManager(
        lab,
        SchemeAdmitter(lab, admission),
        {
            name: Driver(capacity=128, own_mark=OWN_MARK, dialect=DIALECTS[OpenFlow.V1_0])
            for name in lab.switches
        },
        now_ns=0,
        stored=[StoredFlow(number=1, flow=leaves, path=answer.path, state=FlowState.REMOVING)],
        backlogs={"source": cable_ns},
    )
    assert manager.due_ns is not None
    assert manager.due_ns >= cable_ns + sum(answer.delays_ns)
