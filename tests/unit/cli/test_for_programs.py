"""Results for other programs: every command with `--json` has `--csv`, which prints a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stores import full, stored
from typer.testing import CliRunner

import loko_testbed.cli.bench.captures as captures
import loko_testbed.cli.bench.controller as fleet
import loko_testbed.cli.bench.live as live_bench
import loko_testbed.cli.bench.predictability as predictability
import loko_testbed.cli.bench.procedures as bench
import loko_testbed.cli.bench.slices as slice_bench
import loko_testbed.cli.check as checks
import loko_testbed.cli.doctor as doctor
import loko_testbed.cli.lab as live
import loko_testbed.cli.plug_ins as plug_ins
import loko_testbed.cli.serve as serving
import loko_testbed.reproduce.evaluate as evaluated
from loko.service.migration import MigratedFlow, MigrationResult
from loko_testbed.cli.main import COMMANDS, app, load
from loko_testbed.live.doctor.judgement import Diagnosis, Level
from loko_testbed.live.messages import LabStatus
from loko_testbed.measure.bench.captures.analysis import Analysis, ForwardingTimes
from loko_testbed.measure.bench.live.shaped_senders import CASES, SenderMeasurement
from loko_testbed.measure.bench.preconditions import Precondition
from loko_testbed.measure.bench.procedures import PROCEDURES
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.predictability.marks import Mark
from loko_testbed.measure.slices.judgement import SliceRow, SliceVerdict
from loko_testbed.reproduce.result import ClaimResult

FLOW = (
    "- {id: voice, source: H1, destination: H3, udp_source: 1, udp_destination: 2, rate_bps: 64000,"
    " burst_bytes: 306, frame_bytes: 306}\n"
)


def commands() -> Iterator[tuple[str, set[str]]]:
    """Yield the words after `loko` for each command, with its options."""
    waiting: list[tuple[str, Any]] = [(name, load(name)) for name in COMMANDS]
    while waiting:
        words, command = waiting.pop()
        yield words, {option for parameter in command.params for option in parameter.opts}
        waiting += [(f"{words} {name}", part) for name, part in getattr(command, "commands", {}).items()]


WITH_JSON = sorted(words for words, options in commands() if "--json" in options)


def test_a_command_has_json_and_csv_or_neither() -> None:
    assert sorted(words for words, options in commands() if "--csv" in options) == WITH_JSON


def rows_of(*words: object, status: int = 0) -> list[dict[str, str]]:
    done = CliRunner().invoke(app, [str(word) for word in words] + ["--csv"])
    assert done.exit_code == status, (done.output, done.exception)
    table = csv.DictReader(io.StringIO(done.stdout), strict=True)
    rows = list(table)
    assert table.fieldnames
    assert all(None not in row and None not in row.values() for row in rows), "a line of another length"
    return rows


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    path = tmp_path / "flows.yml"
    path.write_text(FLOW)
    return path


Patch = pytest.MonkeyPatch


def model(*_: Any) -> None:
    assert {row["scheme"] for row in rows_of("model", "zodiac-fx")} == {"full-rate", "fifth-rate"}


def plan(_: Patch, flows: Path) -> None:
    assert [row["flow"] for row in rows_of("plan", "two-switch", flows)] == ["voice"]


def schedule(_: Patch, flows: Path) -> None:
    assert [row["flow"] for row in rows_of("schedule", "two-switch", flows, "--slots", 2)] == ["voice"]


def check_schedule(patch: Patch, flows: Path) -> None:
    told = SimpleNamespace(
        refutations=["a", "b"],
        by_arithmetic=['slot 1, "early"'],
        replay=SimpleNamespace(refutations=["late"]),
    )
    patch.setattr(checks, "check", lambda *_, **__: told)
    patch.setattr(checks, "load_schedule", lambda _: None)
    assert rows_of("check-schedule", "two-switch", flows, flows, status=1) == [
        {"by": "arithmetic", "refutation": 'slot 1, "early"'},
        {"by": "replay", "refutation": "late"},
    ]


def check_gates(patch: Patch, flows: Path) -> None:
    patch.setattr(checks, "load_gates", lambda *_: None)
    patch.setattr(checks, "gate_refutations", lambda _: ["stream 1: late, and lost"])
    assert rows_of("check-gates", flows, flows, flows.parent, status=1) == [
        {"refutation": "stream 1: late, and lost"}
    ]


def schedule_gates(_: Patch, flows: Path) -> None:
    task, topology = flows.with_name("task.csv"), flows.with_name("topo.csv")
    task.write_text("stream,src,dst,size,period,deadline,jitter\n3,1,[2],125,100000,100000,0\n")
    links = "".join(f'"{ends}",8,1,2000,0\n' for ends in ((1, 0), (0, 2)))
    topology.write_text(f"link,q_num,rate,t_proc,t_prop\n{links}")
    words = ("schedule-gates", task, topology, flows.with_name("gates"), "--force")
    assert rows_of(*words) == [{"stream": "3", "slot": "0", "offset_ns": "0", "path": "1 0 2"}]


def doctor_told(patch: Patch, _: Path) -> None:
    diagnoses = [Diagnosis(what="cores", level=Level.DOUBTFUL, found="2, busy", change="stop\nothers")]
    patch.setattr(doctor, "gather", lambda *_: None)
    patch.setattr(doctor, "judge", lambda _: diagnoses)
    (row,) = rows_of("doctor", status=1)
    assert (row["level"], row["found"], row["change"]) == ("doubtful", "2, busy", "stop\nothers")


def replay(_: Patch, flows: Path) -> None:
    rows = rows_of("replay", "two-switch", flows, "--seconds", 0.1)
    assert [(row["run"], row["flow"], row["lost"]) for row in rows] == [
        ("1", "voice", "0"),
        ("2", "voice", "0"),
    ]


def evaluate(patch: Patch, flows: Path) -> None:
    claim = ClaimResult(claim="none is late", paper="0", here="0", holds=True, where="figure 17a")
    result = SimpleNamespace(
        figure="fig17a", paper="loko-2019", claims=[claim], breaks_ours=False, broken_claims=[]
    )
    patch.setattr(evaluated, "evaluate", lambda *_: [result])
    (row,) = rows_of("evaluate", "fig17a", "--jobs", 1, "--out", flows.parent / "out")
    assert (row["figure"], row["claim"], row["holds"]) == ("fig17a", "none is late", "True")


def listed(*_: Any) -> None:
    assert "loko/fig17a" in {row["name"] for row in rows_of("figures")}


def status(patch: Patch, _: Path) -> None:
    view = SimpleNamespace(status=SimpleNamespace(lab="two-switch", counters={"S1": {"lost": 3}}))
    patch.setattr(live.BackgroundLab, "all", lambda: [object()])
    patch.setattr(live._View, "of", lambda _: view)
    assert rows_of("lab", "status") == [
        {"lab": "two-switch", "switch": "S1", "counter": "lost", "value": "3"}
    ]


def watch(patch: Patch, _: Path) -> None:
    def at(received: int) -> LabStatus:
        return LabStatus(
            lab="two-switch",
            path="",
            switches=1,
            connected=1,
            controller="none",
            awaits_controller=True,
            flows=(),
            scheduling="",
            counters={"s1": {"received": received, "searches": received, "entries_examined": 3 * received}},
            consoles={},
            real_boards={},
            ports=(),
            captures=None,
            stalls=0,
        )

    statuses = iter([at(0), at(4), at(4)])
    patch.setattr(live, "require_root", lambda: None)
    patch.setattr(live, "_up", lambda _: SimpleNamespace(status=lambda: next(statuses)))
    first, second = rows_of("lab", "watch", "two-switch", "--interval", 0.1, "--count", 2)
    assert (first["look"], first["switch"], first["received"], first["walk"]) == ("1", "s1", "4", "3.0")
    assert (second["look"], second["received"], second["walk"]) == ("2", "0", "")


def analyse(patch: Patch, flows: Path) -> None:
    times = ForwardingTimes(
        frame_bytes=64,
        samples=9,
        min_ns=1,
        max_ns=3,
        mean_ns=2.0,
        quantiles_ns=dict.fromkeys((5, 25, 50, 75, 95), 2.0),
    )
    counts = dict.fromkeys(("entered", "left", "lost", "under_way", "unknown", "not_ip", "undecided"), 0)
    patch.setattr(captures, "taps_of", lambda *_, **__: (None, None))
    patch.setattr(captures, "analyse", lambda *_, **__: Analysis(**counts, times=(times,), first_loss=None))
    (row,) = rows_of("bench", "analyse", flows)
    assert (row["frame_bytes"], row["min_ns"], row["p95_ns"]) == ("64", "1", "2.0")


CONDITION = Precondition(name="order", presumed="first in, first out", measured="kept", holds=True)


def preconditions(patch: Patch, flows: Path) -> None:
    patch.setattr(live_bench, "load_inventory", lambda _: SimpleNamespace(name="x"))
    patch.setattr(live_bench, "output_directory", lambda path: path)
    patch.setattr(live_bench, "measured_store", lambda *_, **__: (SampleStore(flows.parent, {}), None))
    patch.setattr(live_bench, "preconditions", lambda *_: [CONDITION])
    (row,) = rows_of("bench", "preconditions", "--device", "x")
    assert (row["name"], row["presumed"], row["holds"]) == ("order", "first in, first out", "True")


def senders(patch: Patch, _: Path) -> None:
    def seen(gap_us: Any) -> SenderMeasurement:
        numbers = dict.fromkeys(("token_us", "offered_pps", "accepted_pps", "sent_pps", "frame_us"), 1.0)
        return SenderMeasurement(name="one", gap_us=gap_us, burst_frames=None, shaped=False, **numbers)

    patch.setattr(live_bench, "CASES", CASES[:2])
    told = iter([seen(None), seen((1.0, 2.0, 3.0))])
    patch.setattr(live_bench, "measure", lambda *_: next(told))
    rows = rows_of("bench", "senders")
    assert [row["gap_p99_us"] for row in rows] == ["", "3.0"]


def judged(patch: Patch, flows: Path) -> None:
    verdict = SimpleNamespace(mark=next(iter(Mark)), reasons=["fast", "even, too"])
    patch.setattr(predictability, "run_campaign", lambda *_, **__: {})
    patch.setattr(predictability, "verdicts", lambda *_, **__: {"PT": verdict})
    patch.setattr(predictability, "document", lambda *_: {})
    patch.setattr(predictability, "page", lambda *_, **__: "")
    (row,) = rows_of("bench", "predictability", "--quick", "--out", flows.parent)
    assert (row["dimension"], row["reasons"]) == ("PT", "fast; even, too")


def controller(patch: Patch, _: Path) -> None:
    async def measure(_: Any, result: Any) -> None:
        result.rounds = 3

    patch.setattr(fleet, "measure", measure)
    (row,) = rows_of("bench", "controller", "--connect", "tcp:127.0.0.1:1", "--boards", 2, status=1)
    assert (row["boards"], row["rounds"]) == ("2", "3")


def sliced(patch: Patch, flows: Path) -> None:
    row = SliceRow(
        slice="q1", what="rate", configured="1", measured="2, or 3", verdict=SliceVerdict.DIFFERS, because=""
    )
    patch.setattr(slice_bench, "measured_rows", lambda *_, **__: [row])
    out = flows.parent / "out"
    (told,) = rows_of("bench", "slice", "--device", "exact-two", "--out", out, status=1)
    assert (told["what"], told["measured"], told["verdict"]) == ("rate", "2, or 3", "differs")


def procedure(name: str) -> Callable[[Patch, Path], None]:
    def tried(patch: Patch, _: Path) -> None:
        chosen = SimpleNamespace(measure=dict, parts=list, left_out=dict)
        patch.setattr(bench.ChosenCampaign, "of", lambda *_, **__: chosen)
        patch.setattr(bench, "_rows", lambda *_: [{"what": "one, two", "samples": 3, "min": 1}])
        (row,) = rows_of("bench", name)
        assert (row["what"], row["samples"], row["max"]) == ("one, two", "3", "")

    return tried


def whole(patch: Patch, flows: Path) -> None:
    chosen = SimpleNamespace(
        measure=dict, chosen=SimpleNamespace(inventory=None, form="zodiac-fx"), folder=flows.parent, begun=str
    )
    patch.setattr(bench.ChosenCampaign, "of", lambda *_, **__: chosen)
    patch.setattr(bench, "fit", lambda *_: None)
    patch.setattr(bench, "measured_profile", lambda *_, **__: SimpleNamespace(text=""))
    numbers = {"loop": {"value": 1.5, "standard_error": 0.1, "samples": 4}}
    patch.setattr(bench, "summary", lambda *_: {"measured": numbers})
    assert rows_of("bench", "all") == [
        {"number": "loop", "value": "1.5", "standard_error": "0.1", "samples": "4"}
    ]


def stored_flows(_: Patch, flows: Path) -> None:
    store = flows.with_name("flows.sqlite")
    held = full(store, flows=4).flows
    rows = rows_of("store", "list", store)
    assert [row["flow"] for row in rows] == [flow.flow.id for flow in held]
    assert {(row["state"], row["traffic_class"], row["broken"]) for row in rows} == {("installed", "1", "")}
    assert [row["path"].split() for row in rows] == [[hop.switch for hop in flow.path] for flow in held]


def migrated(patch: Patch, flows: Path) -> None:
    lost = MigratedFlow(stored(1), MigrationResult.LOST, "no room", None, None)
    patch.setattr(serving, "migration_of", lambda _: SimpleNamespace(flows=(lost,), breaking=(lost,)))
    words = ("serve", "two-switch", "--migrate", "--store", flows.with_name("flows.sqlite"))
    (row,) = rows_of(*words, status=1)
    assert (row["id"], row["fate"], row["path_before"], row["path"]) == ("f1", "lost", "s1 s2", "")


def plugged_in(patch: Patch, _: Path) -> None:
    patch.setattr(plug_ins, "plug_ins", lambda group: {"x": EntryPoint("x", "nowhere", group.name)})
    patch.setattr(plug_ins, "_added", lambda *_: ["a", "b"])
    rows = rows_of("plug-ins")
    assert [row["group"] for row in rows] == ["loko.schemes", "loko.devices", "loko_testbed.figure_types"]
    assert {row["adds"] for row in rows} == {"a b"}


TRIED: dict[str, Callable[[Patch, Path], None]] = {
    "model": model,
    "plan": plan,
    "schedule": schedule,
    "check-schedule": check_schedule,
    "check-gates": check_gates,
    "schedule-gates": schedule_gates,
    "doctor": doctor_told,
    "replay": replay,
    "serve": migrated,
    "plug-ins": plugged_in,
    "store list": stored_flows,
    "evaluate": evaluate,
    "figures": listed,
    "lab status": status,
    "lab watch": watch,
    "bench analyse": analyse,
    "bench preconditions": preconditions,
    "bench senders": senders,
    "bench predictability": judged,
    "bench controller": controller,
    "bench all": whole,
    "bench slice": sliced,
    **{f"bench {known.name}": procedure(known.name) for known in PROCEDURES},
}


@pytest.mark.parametrize("words", WITH_JSON)
def test_csv_is_a_table(words: str, monkeypatch: Patch, flows: Path) -> None:
    TRIED[words](monkeypatch, flows)


def test_a_sliced_port_has_a_line_for_each_queue_and_size() -> None:
    rows = rows_of("model", "slice", "two")
    assert len({row["queue"] for row in rows}) == 2
    assert all(float(row["goodput_udp_bps"]) > 0 for row in rows)


def test_an_order_of_messages_has_a_line_for_each_way() -> None:
    rows = rows_of("model", "order", "htb", "--message", "data=22080", "--message", "command=7360:data")
    means = [float(row["mean_us"]) for row in rows if row["mean_us"]]
    assert means == sorted(means)
    assert len(rows) > 12
    assert all(float(row["data_us"]) > 0 for row in rows if row["data_us"])
