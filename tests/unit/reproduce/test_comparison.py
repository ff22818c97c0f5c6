"""Comparisons: what each system accepts, how its flows send, and how misbehaving senders are reported."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pydantic import ValidationError

from loko.document import LABS, InputError
from loko.schedule.lab_schedule import LabSchedule
from loko.topology.lab import load_lab
from loko_testbed.reproduce.figure_types.comparison import admission as comparison_admission
from loko_testbed.reproduce.figure_types.comparison.admission import GuaranteedFlow, admitted_flows, requests
from loko_testbed.reproduce.figure_types.comparison.compute import (
    AdmissionQuery,
    answer_query,
    compute,
    late_or_lost_percent,
)
from loko_testbed.reproduce.figure_types.comparison.document import (
    ComparisonFigure,
    ComparisonLab,
    SlotSystem,
)
from loko_testbed.reproduce.figure_types.comparison.replay import (
    ALONE,
    ComparisonReplay,
    Disturbance,
    FlowRow,
    run_replay,
)
from loko_testbed.reproduce.figure_types.experiments import experiments, load_experiment
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import NoProgress

FIGURE = experiments()["tssdn/comparison"]
TWO, RING = FIGURE.labs
SYSTEMS = {compared.key: compared for compared in FIGURE.systems}
LINKS, SWITCHES = SYSTEMS["tssdn_links"], SYSTEMS["tssdn_switch"]
FULL = SYSTEMS["loko_full"]
LAB = load_lab(TWO.lab)


def promised(compared, rate_kbps=FIGURE.rate_kbps) -> tuple[GuaranteedFlow, ...]:
    return admitted_flows(FIGURE, compared, LAB, requests(FIGURE, TWO, LAB, rate_kbps))


def rows_of(compared, kind="none", size=0.0, *, seconds=1.0, role="other") -> list[FlowRow]:
    flows = () if compared is None else promised(compared)
    system = ALONE if compared is None else compared.key
    replay = ComparisonReplay(
        figure=FIGURE,
        comparison_lab=TWO,
        system=system,
        flows=flows,
        disturbance=Disturbance(kind, size),
        seconds=seconds,
        seed=1,
    )
    return [row for row in run_replay(replay).rows if row.role == role]


def test_every_system_is_asked_for_the_same_flows() -> None:
    for comparison_lab in FIGURE.labs:
        lab = load_lab(comparison_lab.lab)
        wanted = requests(FIGURE, comparison_lab, lab, FIGURE.rate_kbps)
        assert len(wanted) == comparison_lab.requests
        assert {flow.source for flow in wanted} == set(lab.hosts)
    ring = requests(FIGURE, RING, load_lab(RING.lab), FIGURE.rate_kbps)
    assert (ring[0].source, ring[0].destination) == ("h1a", "h3a")
    assert (ring[61].source, ring[61].destination) == ("h31b", "h2b")


@pytest.mark.parametrize("compared", [LINKS, SWITCHES], ids=lambda compared: compared.key)
def test_flows_with_slots_have_them_for_themselves_and_the_rate_that_they_ask_for(compared) -> None:
    flows = promised(compared)
    used = set()
    for flow in flows:
        assert flow.slots is not None
        own = [(hop.switch, hop.output_port if compared is LINKS else 0) for hop in flow.path]
        for taken in [(flow.flow.source, 1), *own]:
            assert (flow.slots.offset_ns, taken) not in used
            used.add((flow.slots.offset_ns, taken))
        assert flow.flow.frame_bytes * 8e9 / flow.slots.period_ns >= FIGURE.rate_kbps * 1e3
        assert flow.unaware_ns(2000) == flow.guarantee_ns + flow.slots.period_ns + 4000


def test_a_switch_for_itself_makes_slots_shorter_and_guarantees_tighter() -> None:
    assert max(granted.guarantee_ns for granted in promised(SWITCHES)) < max(
        granted.guarantee_ns for granted in promised(LINKS)
    )


def test_flows_that_send_too_often_for_any_slot_get_none() -> None:
    assert promised(LINKS, rate_kbps=1600) == ()
    assert promised(FULL, rate_kbps=1600)


def test_flows_with_slots_keep_them_and_never_meet() -> None:
    rows = rows_of(SWITCHES)
    assert all(row.frames and not row.lost and not row.late for row in rows)
    alone = {row.flow: row.min_delay_ns for row in rows}
    meeting = {row.flow: row.max_delay_ns for row in rows_of(SWITCHES, "misbehaving", 1.0, seconds=5)}
    assert any(meeting[flow] > alone[flow] + 50_000 for flow in meeting)


def test_a_misbehaving_sender_sends_so_many_times_its_rate_whatever_it_has() -> None:
    for compared in (FULL, LINKS):
        (right,) = (row for row in rows_of(compared, seconds=4) if row.flow == "f0")
        (misbehaving,) = rows_of(compared, "misbehaving", 20.0, seconds=4, role="misbehaving")
        assert misbehaving.flow == "f0"
        assert 15 * right.frames < misbehaving.frames < 25 * right.frames


def test_a_fast_clock_is_a_host_s_and_moves_its_frames_alone() -> None:
    """The drift is a thousand times the figure's, so that it shows within seconds: 10 % more frames."""
    right = {row.flow: row.frames for row in rows_of(LINKS, seconds=4)}
    drifting = rows_of(LINKS, "drift", 100_000.0, seconds=4, role="misbehaving")
    assert {row.flow for row in drifting} == {
        granted.flow.id
        for granted in promised(LINKS)
        if granted.flow.source == promised(LINKS)[0].flow.source
    }
    assert all(1.08 < row.frames / right[row.flow] < 1.12 for row in drifting)
    others = rows_of(LINKS, "drift", 100_000.0, seconds=4)
    assert all(abs(row.frames - right[row.flow]) <= 1 for row in others)


def test_best_effort_is_counted_apart_and_can_be_alone() -> None:
    (alone,) = rows_of(None, "best-effort", 1000.0, role="best-effort")
    (among,) = rows_of(FULL, "best-effort", 1000.0, role="best-effort")
    assert alone.guarantee_ns == among.guarantee_ns == 0
    assert alone.frames == among.frames > 0  # the same instants
    assert alone.mean_delay_ns < among.mean_delay_ns
    (flood,) = rows_of(None, "best-effort", 20_000.0, role="best-effort")
    assert flood.lost
    assert late_or_lost_percent(rows_of(LINKS, "best-effort", 20_000.0)) > 0


def row(**values) -> FlowRow:
    other = {"lab": "a", "system": "s", "disturbance": "none", "size": 0.0, "flow": "f", "role": "other"}
    numbers = dict.fromkeys(("min_delay_ns", "mean_delay_ns", "max_delay_ns", "guarantee_ns"), 0)
    return FlowRow(**{**other, **numbers, "frames": 0, "lost": 0, "late": 0, **values})


def test_late_and_lost_frames_count_once_each_over_all_flows() -> None:
    assert late_or_lost_percent([row(frames=30, lost=1, late=2), row(frames=70, late=1)]) == 4
    assert late_or_lost_percent([]) == 0


def small(**changes) -> ComparisonFigure:
    effort = FIGURE.quick.model_copy(
        update={
            "seconds": 0.5,
            "drift_seconds": 0.5,
            "excess_factors": [50.0],
            "best_effort_kbps": [20_000.0],
            "rates_kbps": [1600.0],
        }
    )
    return FIGURE.model_copy(
        update={"labs": [TWO], "systems": [FULL, SWITCHES], "quick": effort, "scale": effort, **changes}
    )


def test_a_comparison_tells_of_each_system_what_it_accepts_promises_and_suffers(tmp_path) -> None:
    options = Options(mode="virtual", seed=1, out=tmp_path, quick=True)
    outcome, rows = compute(small(), options, NoProgress())
    findings = outcome.findings
    assert findings["two_switch_tssdn_switch_flows"] == len(promised(SWITCHES))
    assert findings["two_switch_tssdn_switch_flows_at_1600_kbps"] == 0
    assert (
        findings["two_switch_tssdn_switch_unaware_ms"] > findings["two_switch_tssdn_switch_guarantee_ms"] + 12
    )
    assert findings["two_switch_loko_full_unaware_ms"] == findings["two_switch_loko_full_guarantee_ms"]
    assert findings["two_switch_tssdn_switch_best_effort_20000_others_percent"] > 0
    frames, lost, late = (rows.column(name).to_pylist() for name in ("frames", "lost", "late"))
    normal = [at for at, kind in enumerate(rows.column("disturbance").to_pylist()) if kind == "none"]
    assert sum(guarantee.packets for guarantee in outcome.guarantees if "TSSDN" in guarantee.system) == sum(
        frames[at] for at in normal if rows.column("system")[at].as_py() == "tssdn_switch"
    )
    assert not any(lost[at] or late[at] for at in normal)
    assert {guarantee.verdict for guarantee in outcome.guarantees} == {"kept"}
    assert compute(small(), options, NoProgress())[0] == outcome
    other = compute(small(), replace(options, seed=2), NoProgress())[0]
    assert other.findings != findings


def test_times_to_answer_are_told_in_mode_live_only(tmp_path) -> None:
    """They depend on this machine, so they are left out of results that must be the same everywhere."""
    small_one = small()
    right, _ = compute(small_one, Options(mode="virtual", seed=1, out=tmp_path), NoProgress())
    timed, _ = compute(small_one, Options(mode="live", seed=1, out=tmp_path), NoProgress())
    times = {name: value for name, value in timed.findings.items() if name not in right.findings}
    assert {name: value for name, value in timed.findings.items() if name not in times} == right.findings
    assert set(times) == {
        f"two_switch_{system}_{name}_ms"
        for system in ("loko_full", "tssdn_switch")
        for name in ("answer_at_200_kbps", "answer_at_1600_kbps", "one_more")
    }
    assert min(times.values()) > 0
    assert timed.table.columns == [*right.table.columns, "answer_all_here_ms", "one_more_here_ms"]
    assert len(timed.chart.panels) == len(right.chart.panels) + 1
    assert [note.where for note in timed.notes] == ["this machine"]
    assert not right.notes


def test_our_buckets_promise_with_a_fast_clock_too_and_slots_do_not(tmp_path) -> None:
    outcome, rows = compute(small(), Options(mode="virtual", seed=1, out=tmp_path), NoProgress())
    counted = {guarantee.system: guarantee.packets for guarantee in outcome.guarantees}
    for system, deeds in (("loko_full", {"none", "drift"}), ("tssdn_switch", {"none"})):
        label = SYSTEMS[system].label
        assert counted[f"{label} on two-switch"] == sum(
            row["frames"]
            for row in rows.to_pylist()
            if row["system"] == system and row["disturbance"] in deeds
        )


def test_a_comparison_fails_if_a_slot_s_scheduler_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic finds two flows in one slot. Only the replay finds a promise that is too short."""
    right = comparison_admission.schedule_of

    def in_one_slot(*args) -> LabSchedule:
        schedule = right(*args)
        return replace(
            schedule, scheduled=[replace(flow, slot=0, offset_ns=0) for flow in schedule.scheduled]
        )

    def hasty(*args) -> LabSchedule:
        schedule = right(*args)
        scheduled = [
            replace(flow, link_bounds_ns=tuple(ns / 10 for ns in flow.link_bounds_ns))
            for flow in schedule.scheduled
        ]
        return replace(schedule, scheduled=scheduled)

    for wrong, told in ((in_one_slot, "is not alone on"), (hasty, "frames took longer than its")):
        monkeypatch.setattr(comparison_admission, "schedule_of", wrong)
        with pytest.raises(
            RunError, match=f"the checker refutes the slots of TSSDN links on two-switch.*{told}"
        ):
            answer_query(AdmissionQuery(FIGURE, TWO, LINKS, FIGURE.rate_kbps))


def test_a_system_that_accepts_nothing_cannot_be_replayed(tmp_path) -> None:
    with pytest.raises(InputError, match=r"TSSDN switch accepts no flow of 1600 kbit/s .* lower rate_kbps"):
        compute(small(rate_kbps=1600.0), Options(mode="virtual", seed=1, out=tmp_path), NoProgress())


@pytest.mark.parametrize("ways", [{}, {"onward": 2, "pairs": [TWO.pairs[0]]}])
def test_who_sends_is_said_in_one_way(ways) -> None:
    with pytest.raises(ValidationError, match="give one of pairs and onward"):
        ComparisonLab(lab="two-switch", label="a", requests=1, best_effort=TWO.pairs[0], **ways)


def test_systems_are_told_apart() -> None:
    twice = [SlotSystem(label="TSSDN links", system="slots", exclusive="links")] * 2
    with pytest.raises(ValidationError, match="systems: two of them have the same label"):
        ComparisonFigure.model_validate(
            {**FIGURE.model_dump(), "systems": [compared.model_dump() for compared in twice]}
        )


@pytest.mark.parametrize(
    ("new", "old", "error"),
    [
        ("kind: comparison", "kind: duel", "kind: 'duel' is called 'comparison'"),
        (
            "excess_factors",
            "rogue_times",
            "unknown key 'rogue_times' (allowed: seconds, drift_seconds, rates_kbps, excess",
        ),
        ("systems:", "contenders:", "did you mean 'systems'?"),
        ("labs:", "arenas:", "did you mean 'labs'?"),
    ],
)
def test_an_earlier_document_is_told_the_new_name(tmp_path, new: str, old: str, error: str) -> None:
    text = (LABS / "tssdn/experiments/comparison.yml").read_text()
    path = tmp_path / "comparison.yml"
    path.write_text(text.replace(new, old))
    with pytest.raises(InputError, match=re.escape(error)):
        load_experiment(path)
