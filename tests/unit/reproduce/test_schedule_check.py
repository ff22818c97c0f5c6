"""The checker of schedules accepts correct schedules and refutes every mutation."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from packages import imported_names
from scheduling import clock
from typer.testing import CliRunner

import loko.schedule
import loko_testbed.reproduce.schedule_check
from loko.schedule.lab_schedule import SchedulingOptions, schedule
from loko.schedule.timed_flow import timed_flows_of
from loko.schedule.values import values_of
from loko.solvers import Solver, solver_named
from loko.topology.lab import lab_of, load_lab
from loko.topology.requests import load_documents
from loko_testbed.cli.main import app
from loko_testbed.reproduce.schedule_check.arithmetic import refutations
from loko_testbed.reproduce.schedule_check.document import ScheduleDocument, WantedFlow
from loko_testbed.reproduce.schedule_check.incremental import IncrementalCheck
from loko_testbed.reproduce.schedule_check.replay import replay

LAB = load_lab("two-switch")
PAIRS = (("H1", "H3"), ("H2", "H4"), ("H4", "H2"), ("H3", "H4"))
FLOWS = [
    {
        "id": f"f{number}",
        "source": source,
        "destination": destination,
        "udp_source": 1000 + number,
        "udp_destination": 5000,
        "frame_bytes": 306,
        "period_us": 20_000,
    }
    for number, (source, destination) in enumerate(PAIRS)
]
WANTED = [WantedFlow.model_validate(flow) for flow in FLOWS]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schedule")
    path = folder / "flows.json"
    path.write_text(json.dumps(FLOWS))
    options = SchedulingOptions(base_period_ns=10_000_000, slots=3, guard_ns=2_000)
    result = schedule(
        LAB, timed_flows_of(load_documents(path), str(path)), options, solver_named(Solver.HIGHS), clock()
    )
    (folder / "schedule.json").write_text(json.dumps(values_of(result, 0.0)))
    return folder


@pytest.fixture
def values(files):
    return json.loads((files / "schedule.json").read_text())


def refuted(values, lab=LAB) -> list[str]:
    return refutations(lab, WANTED, ScheduleDocument.model_validate(values))


def replayed(values, cycles=20):
    return replay(LAB, WANTED, ScheduleDocument.model_validate(values), cycles=cycles, seed=1)


def flow(values, name):
    return next(flow for flow in values["scheduled"] if flow["id"] == name)


def test_a_schedule_is_replayed_in_the_sessions_for_which_it_was_made(values):
    """The table is searched differently with 1.3, so frames take different times."""
    replays = {openflow: replayed({**values, "openflow": openflow}, cycles=5) for openflow in ("1.0", "1.3")}
    assert not any(outcome.refutations for outcome in replays.values())
    assert all(
        replays["1.0"].worst_ns[name] != replays["1.3"].worst_ns[name] for name in replays["1.0"].worst_ns
    )


def move(values, name, slot):
    moved = flow(values, name)
    moved["slot"] = slot
    moved["send"]["offset_us"] = slot * values["slot_us"]


def test_what_is_right_is_not_refuted(values) -> None:
    assert len(values["scheduled"]) == len(FLOWS)
    assert refuted(values) == []
    outcome = replayed(values)
    assert outcome.refutations == []
    assert outcome.packets == 4 * 10, "every second base period of twenty"
    assert all(
        0 < worst <= flow(values, name)["guarantee_us"] * 1e3 for name, worst in outcome.worst_ns.items()
    )


def same_slot(values):
    move(values, "f1", flow(values, "f0")["slot"])


def no_such_slot(values):
    move(values, "f0", 3)


def not_its_slot(values):
    flow(values, "f0")["send"]["offset_us"] += values["slot_us"] / 2


def no_multiple(values):
    flow(values, "f0")["send"]["period_us"] *= 1.05


def not_its_period(values):
    flow(values, "f0")["send"]["period_us"] *= 2


def another_host(values):
    flow(values, "f0")["send"]["host"] = "H2"


def loop(values):
    first = flow(values, "f0")
    first["path"], first["ports"] = ["s1", "s2", "s1", "s2"], [3, 3, 3, 1]


def wrong_port(values):
    flow(values, "f0")["ports"][0] = 2


def wrong_end(values):
    flow(values, "f0")["ports"][-1] = 2


def broken_path(values):
    first = flow(values, "f0")
    first["path"], first["ports"] = ["s2"], [1]


def ports_missing(values):
    flow(values, "f0")["ports"].pop()


def unknown_switch(values):
    flow(values, "f0")["path"][0] = "s9"


def scheduled_twice(values):
    values["scheduled"].append(copy.deepcopy(flow(values, "f0")))


def forgotten(values):
    values["scheduled"].remove(flow(values, "f0"))


def both(values):
    values["unscheduled"].append("f0")


def nobody(values):
    values["unscheduled"].append("f9")


def no_room(values):
    values["base_period_us"] = 2.9 * values["slot_us"]


def slots_too_short(values):
    values["slot_us"] = values["base_period_us"] / 30
    for flow in values["scheduled"]:
        move(values, flow["id"], flow["slot"])


def guard_too_long(values):
    values["guard_us"] = 1000.0


def entry_missing(values):
    values["entries"]["s1"].pop(0)


def entry_elsewhere(values):
    values["entries"]["s1"][0]["output_port"] = 2


def entry_of_nobody(values):
    values["entries"]["s1"].append({**values["entries"]["s1"][0], "tp_src": 9})


def table_too_small(values):
    values["table_entries"] = 1


def above_the_bound(values):
    values["bound"] = 3


def falsely_optimal(values):
    values["bound"] = 5


def switch_shared(values):
    values["exclusive"] = "switches"
    move(values, "f2", flow(values, "f0")["slot"])


MUTATIONS = {
    same_slot: "is not alone on port 3 of s1",
    no_such_slot: "slot 3 is not in 0 to 2",
    not_its_slot: "its slot begins at",
    no_multiple: "has to be a whole number",
    not_its_period: "and wants 20000",
    another_host: "H2 is told to send",
    loop: "has a loop",
    wrong_port: "port 2 of s1 does not lead to s2",
    wrong_end: "port 2 of s2 does not lead to H3",
    broken_path: "no cable leads from H1 to s2",
    ports_missing: "2 switches, but 1 ports",
    unknown_switch: "of s9 does not lead to s2",
    scheduled_twice: "f0: is there 2 times",
    forgotten: "f0: is there 0 times",
    both: "f0: is there 2 times",
    nobody: "f9: nobody asked for it",
    no_room: "the base period has",
    slots_too_short: "more than a slot of",
    guard_too_long: "hosts may be 1000 us off",
    entry_missing: "the entries of s1 send it to ports []",
    entry_elsewhere: "the entries of s1 send it to ports [2]",
    entry_of_nobody: "is of no flow that crosses it",
    table_too_small: "entries, planned for 1",
    above_the_bound: "above the bound 3",
    falsely_optimal: "are called optimal",
    switch_shared: "is not alone on s",
}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_is_refuted_by_arithmetic(values, mutation) -> None:
    mutation(values)
    assert any(MUTATIONS[mutation] in line for line in refuted(values)), refuted(values)


def triangle():
    """Three switches, each connected to both others (ports 2 and 3) and to a host (port 1)."""
    return lab_of(
        {
            **{"name": "triangle", "title": "Triangle", "control_port": 4},
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:70:b3:d5:6c:00:0{n}", "profile": "zodiac-fx"}
                for n in (1, 2, 3)
            },
            "hosts": {f"H{n}": {"mac": f"02:00:00:00:00:0{n}", "ip": f"10.0.0.{n}/24"} for n in (1, 2, 3)},
            "links": [
                *({"a": f"H{n}", "b": f"s{n}:1"} for n in (1, 2, 3)),
                *({"a": f"s{n}:2", "b": f"s{n % 3 + 1}:3"} for n in (1, 2, 3)),
            ],
        }
    )


def test_a_longer_path_is_refuted_where_only_shortest_ones_are_allowed() -> None:
    wanted = WantedFlow(
        id="f", source="H1", destination="H2", udp_source=1, udp_destination=2, frame_bytes=306
    )
    values = {
        **{"scheme": "s-pr", "exclusive": "links", "slots": 1, "base_period_us": 1e6, "slot_us": 1e6},
        **{"guard_us": 0, "unscheduled": [], "bound": 1, "optimal": True, "table_entries": 17, "entries": {}},
        "scheduled": [
            {
                **{"id": "f", "slot": 0, "path": ["s1", "s3", "s2"], "ports": [3, 3, 1], "guarantee_us": 1e5},
                "send": {"host": "H1", "offset_us": 0, "period_us": 1e6},
            }
        ],
    }
    for scheme, is_refuted in (("s-pr", True), ("s-fr", True), ("s-ur", False)):
        document = ScheduleDocument.model_validate({**values, "scheme": scheme})
        told = "\n".join(refutations(triangle(), [wanted], document))
        assert (f"crosses 3 switches, {scheme} allows shortest paths only, of 2" in told) == is_refuted
        assert "port" not in told.replace("send it to ports", "")


@pytest.mark.parametrize(
    ("mutation", "told"),
    [
        (entry_missing, "did not arrive"),
        (entry_elsewhere, "did not arrive"),
        (slots_too_short, "still under way when the next slot could begin"),
        (guard_too_long, ""),
    ],
)
def test_the_replay_refutes_too(values, mutation, told) -> None:
    mutation(values)
    reasons = replayed(values).refutations
    assert any(told in line for line in reasons) == bool(told), reasons


def test_the_replay_finds_frames_that_meet(values) -> None:
    """Two flows in one slot wait for each other, so one is later than it would be alone."""
    alone = replayed(values).worst_ns
    same_slot(values)
    together = replayed(values).worst_ns
    assert max(together.values()) > max(alone.values()) + 10_000


def test_the_replay_refutes_a_guarantee_that_is_too_short(values) -> None:
    flow(values, "f0")["guarantee_us"] = 300.0
    assert any("took longer than its 300 us" in line for line in replayed(values).refutations)


def test_flows_that_come_one_by_one_are_checked_beside_the_others(values) -> None:
    check = IncrementalCheck(LAB, ScheduleDocument.model_validate(values))
    first, second = (copy.deepcopy(flow(values, name)) for name in ("f0", "f1"))
    assert check.refutations(first) == []
    assert check.refutations(first) == [
        "f0: is there already",
        *(f"f0: is not alone on {node} in slot {first['slot']}: f0 is there" for node in ("H1", "s1", "s2")),
    ]
    lost = {**second, "ports": [2, *second["ports"][1:]]}
    assert any("port 2 of s1 does not lead to s2" in line for line in check.refutations(lost))
    second["slot"], second["send"]["offset_us"] = first["slot"], first["send"]["offset_us"]
    meets = [f"f1: is not alone on s1 in slot {first['slot']}: f0 is there"]
    assert check.refutations(second) == meets, "of what was refuted nothing stays"
    check.remove("f0")
    assert check.refutations(second) == []


def test_flows_that_come_one_by_one_are_replayed_with_all_of_their_slot(values) -> None:
    """Arithmetic cannot find out that a frame takes longer than its guarantee says, but a replay can."""
    document = ScheduleDocument.model_validate({**values, "entries": {}})
    check = IncrementalCheck(LAB, document)
    first, second, third = (copy.deepcopy(flow(values, name)) for name in ("f0", "f2", "f3"))
    first["guarantee_us"] = 300.0
    for scheduled, slot in ((first, 0), (second, 0), (third, 1)):
        scheduled["slot"], scheduled["send"]["offset_us"] = slot, slot * values["slot_us"]
        assert check.refutations(scheduled) == []
    (told,) = check.refutations_by_replay("f0")
    assert "f0: " in told
    assert "took longer than its 300 us" in told
    assert check.refutations_by_replay("f2") == [told], "the others of its slot are replayed beside it"
    assert check.refutations_by_replay("f3") == [], "of another slot"
    check.remove("f0")
    assert check.refutations_by_replay("f2") == []


def imports(package) -> set[str]:
    files = Path(package.__file__).parent.rglob("*.py")
    return {name for path in files for name in imported_names(path)}


def test_checker_and_scheduler_share_no_code() -> None:
    makers = ("loko.schedule", "loko.solvers", "loko_testbed.cli.schedule")
    assert not [name for name in imports(loko_testbed.reproduce.schedule_check) if name.startswith(makers)]
    assert not [name for name in imports(loko.schedule) if name.startswith("loko_testbed")]


def test_the_command_says_what_it_found(files, values, tmp_path) -> None:
    told = CliRunner().invoke(
        app, ["check-schedule", "two-switch", str(files / "flows.json"), str(files / "schedule.json")]
    )
    assert told.exit_code == 0
    assert "not refuted: 4 flows; 200 frames in 100 base periods" in told.stdout
    same_slot(values)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(values))
    arguments = [
        "check-schedule",
        "two-switch",
        str(files / "flows.json"),
        str(wrong),
        "--json",
        "--cycles",
        "5",
    ]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 1
    assert json.loads(told.stdout)["refuted"] is True


@pytest.mark.parametrize(("at", "told"), [(2, "flows"), (3, "schedule")])
def test_a_missing_file_is_told(files, at, told) -> None:
    arguments = ["check-schedule", "two-switch", str(files / "flows.json"), str(files / "schedule.json")]
    arguments[at] = "nowhere.json"
    done = CliRunner().invoke(app, arguments)
    assert f"{told} 'nowhere.json': no such file" in done.stderr
