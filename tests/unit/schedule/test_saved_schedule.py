"""`loko schedule --keep`: flows come and go, no other flow is moved, and the cost of that is bounded."""

from __future__ import annotations

import json

import pytest
import yaml
from gate_examples import examples
from hypothesis import given, reject
from hypothesis import strategies as st
from scheduling import clock
from typer.testing import CliRunner

from loko.document import InputError
from loko.schedule.lab_schedule import SchedulingOptions, hops_of, lab_graph, path_of, schedule
from loko.schedule.problem import SchedulingScheme
from loko.schedule.saved_schedule import SavedSchedule, extend
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import Exclusive
from loko.schedule.values import values_of
from loko.solvers import Solver, solver_named
from loko.topology.lab import load_lab
from loko_testbed.cli.main import app

LAB = load_lab("two-switch")
RING = load_lab("labs/ring/five.yml")
HIGHS = solver_named(Solver.HIGHS)
HOSTS = ("H1", "H2", "H3", "H4")
PAIRS = [(source, destination) for source in HOSTS for destination in HOSTS if source != destination]


def flow(number, pair=None, frame_bytes=306) -> TimedFlow:
    ends = PAIRS[number % len(PAIRS)] if pair is None else pair
    return TimedFlow(f"f{number}", *ends, 1000 + number, 5000, frame_bytes, None, None)


def made(flows, lab=LAB, slots=3, **wishes) -> SavedSchedule:
    result = schedule(lab, flows, SchedulingOptions(slots=slots, guard_ns=2000, **wishes), HIGHS, clock())
    return SavedSchedule.model_validate_json(json.dumps(values_of(result, 0.0)))


def numbers(most=11) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=1, max_size=10, unique=True)


@examples(25)
@given(
    before=numbers(),
    after=numbers(),
    scheme=st.sampled_from(SchedulingScheme),
    exclusive=st.sampled_from(Exclusive),
    slots=st.integers(1, 4),
)
def test_nobody_is_moved_and_the_cost_is_within_its_bound(before, after, scheme, exclusive, slots) -> None:
    kept = made([flow(number) for number in before], slots=slots, scheme=scheme, exclusive=exclusive)
    wanted = [flow(number) for number in after]
    try:
        extended = extend(LAB, wanted, kept, HIGHS, clock())
    except InputError as refusal:
        if "paths of new flows are longer" in str(refusal):
            reject()  # the slots are only as long as the first flows needed
        raise
    had = {scheduled.id: (scheduled.slot, scheduled.path, scheduled.ports) for scheduled in kept.scheduled}
    has = {
        scheduled.timed.id: (
            scheduled.slot,
            [hop.switch for hop in scheduled.path],
            [hop.output_port for hop in scheduled.path],
        )
        for scheduled in extended.schedule.scheduled
    }
    names = {wanted_flow.id for wanted_flow in wanted}
    assert {name: what for name, what in has.items() if name in had} == {
        name: what for name, what in had.items() if name in names
    }
    assert set(extended.kept) == had.keys() & names
    assert set(extended.removed) == had.keys() - names
    assert set(extended.added) == has.keys() - had.keys()
    used = [
        (slot, switch, port if exclusive is Exclusive.LINKS else 0)
        for slot, path, ports in has.values()
        for switch, port in zip(path, ports, strict=True)
    ]
    used += [
        (has[wanted_flow.id][0], wanted_flow.source, 1) for wanted_flow in wanted if wanted_flow.id in has
    ]
    assert len(set(used)) == len(used)
    anew = schedule(
        LAB,
        wanted,
        SchedulingOptions(
            slots=slots,
            base_period_ns=extended.schedule.timing.base_period_ns,
            guard_ns=2000,
            scheme=scheme,
            exclusive=exclusive,
            entries=kept.table_entries,
        ),
        HIGHS,
        clock(),
    )
    assert 0 <= len(anew.scheduled) - len(has) <= extended.optimality_gap


@pytest.mark.parametrize("exclusive", Exclusive)
@pytest.mark.parametrize("lab", [LAB, RING], ids=lambda lab: lab.name)
def test_a_path_is_found_again_by_its_switches_and_ports(lab, exclusive) -> None:
    graph = lab_graph(lab, exclusive)
    for source in lab.hosts:
        for destination in lab.hosts:
            if source == destination:
                continue
            (path,) = graph.shortest_paths(source, destination)
            hops = hops_of(lab, graph, path)
            assert path_of(graph, source, destination, hops) == path
            assert path_of(graph, destination, source, hops) is None
            assert path_of(graph, source, destination, hops[:-1]) is None
            assert path_of(graph, source, destination, [*hops[:-1], hops[0], hops[-1]]) is None


def test_a_flow_keeps_a_slot_that_nobody_would_give_it_today() -> None:
    kept = made([flow(0), flow(2)], slots=3)
    (last,) = (scheduled for scheduled in kept.scheduled if scheduled.id == "f2")
    later = kept.model_copy(update={"scheduled": [last.model_copy(update={"slot": 2})]})
    extended = extend(LAB, [flow(2), flow(0)], later, HIGHS, clock())
    assert {scheduled.timed.id: scheduled.slot for scheduled in extended.schedule.scheduled} == {
        "f2": 2,
        "f0": 0,
    }


def test_where_moving_would_help_the_bound_says_so() -> None:
    """One flow takes the host's cable in one slot, another the trunk in the other. One slot would do."""
    wanted = [flow(1, ("H1", "H2")), flow(2, ("H2", "H3")), flow(3, ("H1", "H4"))]
    kept = made(wanted[:2], slots=2)
    apart = [scheduled.model_copy(update={"slot": slot}) for slot, scheduled in enumerate(kept.scheduled)]
    extended = extend(LAB, wanted, kept.model_copy(update={"scheduled": apart}), HIGHS, clock())
    assert [left_out.id for left_out in extended.schedule.unscheduled] == ["f3"]
    assert extended.optimality_gap == 1
    assert len(made(wanted, slots=2).scheduled) == 3


class Shell:
    """Runs the command on files of its own."""

    def __init__(self, folder) -> None:
        self.flows, self.schedule = folder / "flows.yml", folder / "schedule.json"

    def write(self, *documents) -> None:
        self.flows.write_text(yaml.safe_dump(list(documents)))

    def __call__(self, *options, lab="two-switch"):
        return CliRunner().invoke(app, ["schedule", lab, str(self.flows), *options])

    def keep(self, *options, lab="two-switch"):
        return self("--keep", str(self.schedule), *options, lab=lab)

    def make(self, *options) -> None:
        done = self(*options, "--json")
        assert done.exit_code == 0, done.stderr
        self.schedule.write_text(done.stdout)

    def change(self, **values) -> None:
        self.schedule.write_text(json.dumps(json.loads(self.schedule.read_text()) | values))


def document(name, source="H1", destination="H3", port=1001, **more) -> dict[str, object]:
    ends = {"source": source, "destination": destination, "udp_source": port, "udp_destination": 5001}
    return {"id": name, **ends, "frame_bytes": 306} | more


A, B, C = document("a"), document("b", "H2", "H4", 1002), document("c", "H3", "H1", 1003)


@pytest.fixture
def shell(tmp_path) -> Shell:
    made_here = Shell(tmp_path)
    made_here.write(A, B)
    made_here.make("--scheme", "s-pr", "--slots", "3")
    return made_here


def test_the_command_keeps_adds_and_lets_go_and_its_schedule_is_not_refuted(shell) -> None:
    shell.write(C, B)
    done = shell.keep("--json")
    assert done.exit_code == 0
    values, before = json.loads(done.stdout), json.loads(shell.schedule.read_text())
    assert (values["kept"], values["added"], values["removed"]) == (["b"], ["c"], ["a"])
    assert values["optimality_gap"] == 0
    assert [flow for flow in values["scheduled"] if flow["id"] == "b"] == [
        scheduled for scheduled in before["scheduled"] if scheduled["id"] == "b"
    ]
    for name in ("scheme", "exclusive", "slots", "base_period_us", "slot_us", "guard_us", "table_entries"):
        assert values[name] == before[name]
    shell.schedule.write_text(done.stdout)
    again = shell.keep("--json")
    assert json.loads(again.stdout)["scheduled"] == values["scheduled"]
    checked = CliRunner().invoke(
        app, ["check-schedule", "two-switch", str(shell.flows), str(shell.schedule), "--cycles", "20"]
    )
    assert checked.exit_code == 0, checked.stdout


def test_what_keeping_costs_is_printed(shell) -> None:
    shell.write(A, B, C)
    done = shell.keep()
    assert done.exit_code == 0
    assert "2 flows were not moved, 1 were added; that nobody was moved costs no flow" in done.stdout
    shell.write(*(document(f"n{number}", port=2000 + number) for number in range(4)), B)
    full = shell.keep()
    assert full.exit_code == 1
    assert "left: a" in full.stdout
    assert "costs at most 1 flow" in full.stdout or "costs no flow" in full.stdout


@pytest.mark.parametrize(
    "option",
    [
        ("--scheme", "s-pr"),
        ("--slots", "3"),
        ("--base-period-us", "9000"),
        ("--exclusive", "links"),
        ("--guard-us", "2"),
        ("--entries", "17"),
        ("--time-indexed",),
        ("--openflow", "1.3"),
    ],
    ids=lambda option: option[0],
)
def test_what_the_schedule_says_is_not_said_twice(shell, option) -> None:
    done = shell.keep(*option)
    assert done.exit_code == 2
    assert done.stderr == (f"error: {option[0]}: the kept schedule decides this; leave it or --keep out\n")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("flows", "told"),
    [
        ([A, document("big", port=1009, frame_bytes=600)], "us are needed, those of the schedule have"),
        ([document("a", "H1", "H4")], "flow 'a': its path in the schedule does not lead from H1 to H4"),
        ([A, document("x", "H9")], "flow 'x': lab 'two-switch' has no host 'H9'"),
        ([document("a", period_us=10.0)], "flow 'a': its period of 10 us is no multiple"),
    ],
)
def test_flows_that_do_not_fit_the_schedule_are_told_in_one_line(shell, flows, told) -> None:
    shell.write(*flows)
    done = shell.keep()
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_frames_that_a_buffer_does_not_hold_in_such_slots_are_told(shell) -> None:
    shell.write(A, document("big", port=1009, frame_bytes=1000))
    done = shell.keep()
    assert done.exit_code == 2
    assert "frames of 1000 bytes need their switches to themselves" in done.stderr
    assert "schedule anew, without --keep" in done.stderr
    assert shell("--scheme", "s-pr", "--slots", "3").exit_code == 0
    shell.write(A, document("big", port=1009, frame_bytes=1518))
    done = shell.keep()
    assert done.exit_code == 2
    assert "its buffer does not hold a frame of 1518 bytes; send smaller ones" in done.stderr


def test_a_table_that_is_full_is_told(shell) -> None:
    shell.change(table_entries=2)
    shell.write(A, B, C)
    done = shell.keep()
    assert done.exit_code == 2
    assert "3 scheduled flows cross it, its table is planned for 2; schedule fewer flows, or" in done.stderr


def flow_in_json(**changes) -> dict[str, object]:
    return {"id": "a", "slot": 0, "path": ["s1", "s2"], "ports": [3, 1], **changes}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lab": "ring"}, "the schedule is for the lab 'ring', not for 'two-switch'"),
        ({"scheduled": [flow_in_json(slot=7)]}, "flow 'a': there is no slot 7 of 3; schedule anew"),
        ({"scheduled": [flow_in_json(), flow_in_json()]}, "flow 'a': is listed twice in the schedule"),
        ({"scheduled": [flow_in_json(ports=[3])]}, "does not lead from H1 to H3"),
        ({"scheduled": [flow_in_json(path=["s9"], ports=[3])]}, "does not lead from H1 to H3"),
        ({"scheduled": [flow_in_json(), flow_in_json(id="b", ports=[3, 2])]}, "'a' has one of its links"),
        ({"slots": 0}, "slots"),
        ({"scheme": "s-xx"}, "scheme"),
    ],
)
def test_a_schedule_that_cannot_stand_is_told_in_one_line(shell, changes, told) -> None:
    shell.change(**changes)
    done = shell.keep()
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_detour_is_no_path_of_a_scheme_of_shortest_paths(tmp_path) -> None:
    """On the ring of five, a frame to the next switch may go all the way round, but not with s-pr."""
    kept = made([flow(0, ("h1", "h2"))], lab=RING, slots=2, scheme=SchedulingScheme.UNCONSTRAINED)
    (scheduled,) = kept.scheduled
    round_trip = scheduled.model_copy(
        update={"path": ["s1", "s2", "s3", "s4", "s5", "s1", "s2"], "ports": [2, 2, 2, 2, 2, 2, 1]}
    )
    detour = kept.model_copy(update={"scheduled": [round_trip], "scheme": SchedulingScheme.PATH_SETS})
    with pytest.raises(Exception, match="is not a shortest one, as s-pr asks"):
        extend(RING, [flow(0, ("h1", "h2"))], detour, HIGHS, clock())


def test_a_file_that_is_not_there_is_told(shell, tmp_path) -> None:
    done = shell("--keep", str(tmp_path / "none.json"))
    assert done.exit_code == 2
    assert "none.json': no such file" in done.stderr
