"""Schedules of labs: slots that are long enough, send times, entries, and errors for wrong input."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml
from scheduling import clock
from typer.testing import CliRunner

import loko.schedule.values
from loko import solvers
from loko.document import LABS, InputError
from loko.schedule.lab_schedule import SchedulingOptions, hops_of, lab_graph, schedule
from loko.schedule.problem import SchedulingScheme
from loko.schedule.timed_flow import TimedFlow, timed_flows_of
from loko.schedule.timing import CycleTiming, Exclusive
from loko.schedule.values import values_of
from loko.solvers import Solver, highs, solver_named
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko.topology.requests import load_documents
from loko_testbed.cli.main import app

LAB = load_lab("two-switch")
HIGHS = solver_named(Solver.HIGHS)
PAIRS = (("H1", "H3"), ("H2", "H4"), ("H3", "H1"), ("H4", "H2"))
FRAME = 306
MS = 1_000_000


def timed(number, pair, frame_bytes=FRAME, period_ns=None, requested_ns=None) -> TimedFlow:
    return TimedFlow(f"f{number}", *pair, 1000 + number, 5000, frame_bytes, period_ns, requested_ns)


def flows(count=4, **options) -> tuple[TimedFlow, ...]:
    return tuple(timed(number, PAIRS[number % 4], **options) for number in range(count))


def scheduled(wanted, **wishes):
    return schedule(LAB, wanted, SchedulingOptions(**wishes), HIGHS, clock())


@pytest.mark.parametrize("exclusive", Exclusive)
@pytest.mark.parametrize("scheme", SchedulingScheme)
def test_no_two_flows_have_what_is_exclusive_in_one_slot(scheme, exclusive) -> None:
    result = scheduled(flows(8), scheme=scheme, slots=4, exclusive=exclusive)
    used = set()
    for assigned in result.scheduled:
        hops = [(hop.switch, hop.output_port if exclusive is Exclusive.LINKS else 0) for hop in assigned.path]
        for taken in [*hops, (assigned.timed.source, 1)]:
            assert (assigned.slot, taken) not in used
            used.add((assigned.slot, taken))
    assert len(result.scheduled) == result.solution.bound == (8 if exclusive is Exclusive.LINKS else 4)
    assert {flow.id for flow in result.unscheduled} == {f"f{n}" for n in range(8)} - {
        assigned.timed.id for assigned in result.scheduled
    }


@pytest.mark.parametrize("guard_ns", [0, 50_000])
def test_a_slot_holds_the_slowest_frame_and_both_guards(guard_ns) -> None:
    result = scheduled(flows(), slots=2, guard_ns=guard_ns)
    longest_ns = max(assigned.bound_ns for assigned in result.scheduled)
    assert longest_ns + 2 * guard_ns <= result.timing.slot_ns < longest_ns + 2 * guard_ns + 1
    assert result.timing.base_period_ns == 2 * result.timing.slot_ns


def test_sharing_a_cpu_makes_the_slot_longer() -> None:
    alone, shared = (
        scheduled(flows(), slots=4, exclusive=sharing).timing.slot_ns for sharing in reversed(Exclusive)
    )
    assert alone < shared


def test_large_frames_have_the_switches_for_themselves() -> None:
    """Three of them can meet in a switch, which is more than the board's buffer holds."""
    assert scheduled(flows(), slots=4).exclusive is Exclusive.LINKS
    assert scheduled(flows(frame_bytes=1518), slots=4).exclusive is Exclusive.SWITCHES
    with pytest.raises(
        InputError, match=r"--exclusive links: s1 does not hold .* choose --exclusive switches"
    ):
        scheduled(flows(frame_bytes=1518), slots=4, exclusive=Exclusive.LINKS)


def test_entries_lead_along_the_path() -> None:
    result = scheduled(flows(), slots=4)
    for assigned in result.scheduled:
        for hop in assigned.path:
            (entry,) = [e for e in result.entries[hop.switch] if e.match.tp_src == assigned.timed.udp_source]
            assert entry.output_port == hop.output_port
            assert entry.match.nw_src == LAB.hosts[assigned.timed.source].ip.ip
    assert sum(map(len, result.entries.values())) == sum(len(assigned.path) for assigned in result.scheduled)


@pytest.mark.parametrize("exclusive", Exclusive)
def test_paths_of_the_graph_are_paths_of_the_lab(exclusive) -> None:
    graph = lab_graph(LAB, exclusive)
    (path,) = graph.shortest_paths("H1", "H3")
    assert [(hop.switch, hop.output_port) for hop in hops_of(LAB, graph, path)] == [("s1", 3), ("s2", 1)]


def test_first_instant_is_as_in_algorithm_1() -> None:
    timing = CycleTiming(base_period_ns=1000, slot_ns=100, guard_ns=0)
    assert timing.first_ns(2_345, 3) == 3_300
    assert timing.first_ns(2_345, 3, creation_ns=7) == 3_293


def test_a_flow_uses_its_slot_in_every_period_of_its_own() -> None:
    """Section 3.1: a flow with twice the base period uses its slot in alternate cycles."""
    wanted = (timed(0, PAIRS[0], period_ns=10 * MS), timed(1, PAIRS[1], period_ns=20 * MS))
    result = scheduled(wanted)
    assert [assigned.every_ns for assigned in result.scheduled] == [10 * MS, 20 * MS]
    assert result.timing.base_period_ns == 10 * MS


def test_rates_become_periods_that_are_not_longer() -> None:
    asked = timed(0, PAIRS[0], requested_ns=25.5 * MS)
    assert asked.every(10 * MS) == 20 * MS
    slow = scheduled((timed(0, PAIRS[0], requested_ns=5 * MS),), base_period_ns=10 * MS)
    assert [slower.timed.id for slower in slow.rate_limited_flows] == ["f0"]
    assert not scheduled((asked,), base_period_ns=10 * MS).rate_limited_flows


def written(tmp_path, text) -> str:
    path = tmp_path / "flows.yml"
    path.write_text(text)
    return str(path)


FLOW = "id: a, source: H1, destination: H3, udp_source: 1001, udp_destination: 5001, frame_bytes: 306"


@pytest.mark.parametrize(
    ("lines", "options", "told"),
    [
        (
            [FLOW.replace("H3", "H9")],
            [],
            "flow 'a': lab 'two-switch' has no host 'H9' (hosts: H1, H2, H3, H4)",
        ),
        ([FLOW.replace("H3", "H1")], [], "flow 'a': destination: is H1, the source, too"),
        ([f"{FLOW}, period_us: 10000"], ["--base-period-us", "3000"], "is no multiple of the base period"),
        ([FLOW], [], "how many slots?"),
        ([FLOW], ["--slots", "9", "--base-period-us", "9000"], "holds 3 slots of 2542.8 us, not 9"),
        ([FLOW], ["--base-period-us", "1"], "holds 0 slots"),
        ([f"{FLOW}, period_us: 10, rate_bps: 1.0"], [], "both say how often it sends"),
        ([FLOW, FLOW], ["--slots", "1"], "flow 'a': this id is used twice"),
        (
            [FLOW],
            ["--slots", "1", "--entries", "200"],
            "200 entries planned, a table of two-switch holds 128",
        ),
        ([f"{FLOW}, color: red"], ["--slots", "1"], "unknown key 'color'"),
        ([], ["--slots", "1"], "no flows to schedule"),
    ],
)
def test_wrong_input_is_told_in_one_line(tmp_path, lines, options, told) -> None:
    text = "".join(f"- {{{line}}}\n" for line in lines) or "[]"
    done = CliRunner().invoke(app, ["schedule", "two-switch", written(tmp_path, text), *options])
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def in_one_line(done) -> str:
    assert done.exit_code == 2, done.stdout
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_solver_that_is_missing_or_has_no_memory_is_told_in_one_line(tmp_path, monkeypatch) -> None:
    path = written(tmp_path, f"- {{{FLOW}}}\n")

    def asked(*options):
        return CliRunner().invoke(app, ["schedule", "two-switch", path, "--slots", "2", *options])

    monkeypatch.setattr(solvers, "find_spec", lambda _: None)
    told = in_one_line(asked("--solver", "cbc"))
    assert "--solver cbc: the package 'ortools' is missing: pip install 'loko-testbed[solvers]'" in told

    def no_memory(*_args):
        raise MemoryError

    monkeypatch.setattr(highs, "_as_lp", no_memory)
    told = in_one_line(asked("--time-indexed"))
    assert "--solver highs: out of memory for" in told
    assert "schedule fewer flows or slots" in told


def test_hosts_without_a_path_are_told_in_one_line(tmp_path) -> None:
    """A lab is invalid if one of its hosts cannot reach another."""
    text = (LABS / "two-switch" / "lab.yml").read_text()
    (tmp_path / "lab.yml").write_text(text.replace('  - {a: "s1:3", b: "s2:3"}\n', ""))
    path = written(tmp_path, f"- {{{FLOW}}}\n")
    done = CliRunner().invoke(app, ["schedule", str(tmp_path), path, "--slots", "2"])
    assert "H3 cannot be reached from H1; add a link" in in_one_line(done)


def test_a_table_that_is_too_small_is_told(tmp_path) -> None:
    lines = "".join(
        f"- {{{FLOW.replace('id: a', f'id: a{number}').replace('1001', str(1001 + number))}}}\n"
        for number in range(5)
    )
    options = ["--slots", "5", "--entries", "4"]
    done = CliRunner().invoke(app, ["schedule", "two-switch", written(tmp_path, lines), *options])
    assert done.exit_code == 2
    assert "s1: 5 scheduled flows cross it, its table is planned for 4" in done.stderr


def test_a_schedule_is_printed_as_promised(tmp_path) -> None:
    path = written(
        tmp_path, f"- {{{FLOW}}}\n- {{{FLOW.replace('id: a', 'id: b').replace('1001', '1002')}}}\n"
    )
    done = CliRunner().invoke(
        app, ["schedule", "two-switch", path, "--scheme", "s-pr", "--slots", "1", "--json"]
    )
    assert done.exit_code == 1
    values = json.loads(done.stdout)
    assert values["scheme"] == "s-pr"
    assert values["slots"] == values["bound"] == 1
    assert values["optimal"] is True
    assert [(flow["id"], flow["slot"], flow["path"]) for flow in values["scheduled"]] == [
        ("a", 0, ["s1", "s2"])
    ]
    assert values["unscheduled"] == ["b"]
    assert values["seconds"] >= 0
    done = CliRunner().invoke(
        app, ["schedule", "two-switch", path, "--scheme", "s-pr", "--slots", "1", "--csv"]
    )
    assert done.exit_code == 1
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["flow"], row["scheduled"], row["slot"], row["path"]) for row in rows] == [
        ("a", "yes", "0", "s1 s2"),
        ("b", "no", "", ""),
    ]
    assert rows[1]["udp_source"] == "1002"
    assert float(rows[0]["guarantee_us"]) == values["scheduled"][0]["guarantee_us"]
    done = CliRunner().invoke(app, ["schedule", "two-switch", path, "--slots", "2"])
    assert done.exit_code == 0
    assert "2 flows, and no schedule has more" in done.stdout


def test_a_list_for_plan_is_taken_as_it_is(tmp_path) -> None:
    path = written(tmp_path, f"- {{{FLOW}, rate_bps: 100000, burst_bytes: 306}}\n")
    (flow,) = timed_flows_of(load_documents(path), str(path))
    assert flow.requested_ns == pytest.approx(306 * 8e9 / 100_000)


def test_slots_are_long_enough_for_the_version_of_the_sessions() -> None:
    """The costs of tables and messages depend on the version, and so does the slot. The schedule names it."""
    slots = {}
    for openflow in OpenFlow:
        result = scheduled(flows(), slots=4, openflow=openflow, changes_per_s=20)
        slots[openflow] = result.timing.slot_ns
        assert values_of(result, 0.0)["openflow"] == openflow.value
    assert slots[OpenFlow.V1_3] > slots[OpenFlow.V1_0]


def test_a_board_that_speaks_only_1_0_gets_no_slots_for_1_3(tmp_path) -> None:
    """The error is one line, and no host's file is written."""
    document = yaml.safe_load((LABS / "two-switch" / "lab.yml").read_text())
    document["switches"]["s1"]["config"]["openflow_version"] = 1
    (tmp_path / "lab.yml").write_text(yaml.safe_dump(document))
    wanted = {"id": "a", "source": "H1", "destination": "H3", "udp_source": 1, "udp_destination": 2}
    (tmp_path / "flows.json").write_text(json.dumps([{**wanted, "frame_bytes": 306, "period_us": 20_000}]))
    words = ["schedule", str(tmp_path / "lab.yml"), str(tmp_path / "flows.json"), "--openflow", "1.3"]
    done = CliRunner().invoke(app, [*words, "--sources", str(tmp_path / "sources")])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: s1: its openflow_version is 1, so it speaks OpenFlow 1.0 only")
    assert not (tmp_path / "sources").exists()


def test_no_schedule_is_given_out_that_the_checker_refutes(tmp_path, monkeypatch) -> None:
    """Whatever the scheduler does wrong. Here it puts all flows into one slot."""
    honest = loko.schedule.values.values_of

    def wrong(*arguments):
        values = honest(*arguments)
        for flow in values["scheduled"]:
            flow["slot"] = 0
            flow["send"]["offset_us"] = 0.0
        return values

    path = written(
        tmp_path, f"- {{{FLOW}}}\n- {{{FLOW.replace('id: a', 'id: b').replace('1001', '1002')}}}\n"
    )
    words = ["schedule", "two-switch", path, "--slots", "2", "--json", "--sources", str(tmp_path / "sources")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    checked = json.loads(done.stdout)["checked"]
    assert not checked["refuted"]
    assert checked["packets"] == 2 * checked["base_periods"] > 0
    monkeypatch.setattr(loko.schedule.values, "values_of", wrong)
    words[-1] = str(tmp_path / "not these")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "refuted: b: is not alone on port 1 of H1 in slot 0: a is there, too" in done.stderr
    assert not (tmp_path / "not these").exists()


def test_a_schedule_that_somebody_has_changed_is_not_served(tmp_path) -> None:
    """It is refused before anything is stored or any switch is contacted."""
    words = ["schedule", "two-switch", written(tmp_path, f"- {{{FLOW}}}\n"), "--slots", "2", "--json"]
    values = json.loads(CliRunner().invoke(app, [*words, "--changes-per-s", "20"]).stdout)
    values["entries"]["s1"][0]["output_port"] = 2
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(values))
    done = CliRunner().invoke(
        app, ["serve", "two-switch", "--schedule", str(changed), "--store", str(tmp_path / "store")]
    )
    assert done.exit_code == 2
    assert "refuted: a: the entries of s1 send it to ports [2], not 3; schedule anew" in done.stderr
    assert not (tmp_path / "store").exists()
