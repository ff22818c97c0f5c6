"""Random admitted sets, packet by packet: whether any is lost, or later than guaranteed, also after failures.

This does not use points of `loko_testbed.reproduce.replay`: records of a thousand million packets are too
large to keep, and each trial draws its own lab, flows and senders from its seed.
``python -m loko_testbed.reproduce.studies.random_sets SEED`` repeats one trial on boards.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from loko.document import StrictModel
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.guarantees import guarantee_of_packets
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.failures.trial import FailureTrial, failure_trial
from loko_testbed.simulation.worst_case.port_trial import PortTrial, changing_port_trial, port_trial
from loko_testbed.simulation.worst_case.trial import Trial, narrow_down, run_trial

Part = Literal["boards", "ports", "port changes", "failures"]
_NS_PER_HOUR: Final = 3.6e12
_TIGHTEST: Final = 5
"""Trials that are named, as those which came closest to their guarantees."""


class RandomSetsSize(StrictModel):
    """How much is measured."""

    part: Part
    """Sets on boards, or on switches with queues for each port: sets that stay, or that change; or sets on
    either that survive failures."""
    runs: int
    """Trials."""
    packets: int
    """Packets of a trial at most; low rates have fewer, and sets that change on ports send all they plan."""


class RandomSetsTask(NamedTuple):
    """A trial."""

    part: Part
    number: int
    seed: int
    """Of the trial, by which it can be repeated."""
    packets: int

    def __str__(self) -> str:
        return f"trial {self.number + 1} on {self.part}"


def tasks(size: RandomSetsSize, seed: int) -> list[RandomSetsTask]:
    """Return the trials."""
    return [
        RandomSetsTask(size.part, number, campaign_seed(seed, number), size.packets)
        for number in range(size.runs)
    ]


def campaign_seed(seed: int, number: int) -> int:
    """Return the seed of a trial."""
    text = f"{seed} {number}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def measure(task: RandomSetsTask) -> Rows:
    """Carry out a trial, and judge all its packets."""
    if task.part == "boards":
        return [_of_boards(task.number, run_trial(task.seed, packets=task.packets))]
    if task.part == "ports":
        return [_of_ports(task.number, port_trial(task.seed, packets=task.packets))]
    if task.part == "port changes":
        return [_of_ports(task.number, changing_port_trial(task.seed))]
    return [_of_failures(task.number, failure_trial(task.seed, packets=task.packets))]


def _of_boards(number: int, trial: Trial) -> dict[str, Any]:
    case, verdict = trial.drawn.case, trial.verdict
    return {
        "number": number,
        "seed": trial.drawn.seed,
        "scheme": case.scheme,
        "shape": trial.drawn.shape,
        "way": trial.way,
        "switches": trial.drawn.switches,
        "entries": case.entries,
        "sizes": list(trial.drawn.sizes),
        "flows": len(case.admitted),
        "control": sorted(message.value for message in case.control),
        "duration_ns": trial.duration_ns,
        "packets": verdict.packets,
        "passages": sum(
            flow.sent * len(admitted.hops)
            for flow, admitted in zip(verdict.flows, case.admitted, strict=True)
        ),
        "lost": verdict.lost,
        "broken": len(verdict.broken),
        "worst": verdict.worst,
        "events": len(verdict.events),
    }


def _of_ports(number: int, trial: PortTrial) -> dict[str, Any]:
    verdict = trial.verdict
    return {
        "number": number,
        "seed": trial.seed,
        "profile": trial.profile,
        "shape": trial.shape,
        "flows": trial.flows,
        "packets": verdict.packets,
        "lost": verdict.lost,
        "broken": len(verdict.broken),
        "worst": verdict.worst,
        "events": len(verdict.events),
    }


def _of_failures(number: int, trial: FailureTrial) -> dict[str, Any]:
    flows = [flow for verdict in trial.verdicts for flow in verdict.flows]
    return {
        "number": number,
        "seed": trial.seed,
        "profile": trial.profile,
        "shape": trial.shape,
        "protection": trial.protection.value,
        "flows": trial.flows,
        "failures": len(trial.verdicts),
        "packets": sum(verdict.packets for verdict in trial.verdicts),
        "lost": sum(flow.lost_beyond for flow in flows),
        "lost_as_stated": sum(verdict.lost for verdict in trial.verdicts),
        "most_lost": sum(verdict.most_lost for verdict in trial.verdicts),
        "eliminated": sum(flow.eliminated for flow in flows),
        "broken": sum(len(verdict.broken) for verdict in trial.verdicts),
        "worst": max(verdict.worst for verdict in trial.verdicts),
        "events": sum(len(verdict.events) for verdict in trial.verdicts),
    }


_GROUPS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "": lambda row: row["scheme"],
    "network: ": lambda row: row["shape"],
    "hosts send: ": lambda row: row["way"],
    "frames: ": lambda row: "one size" if len(row["sizes"]) == 1 else "several sizes",
    "controller: ": lambda row: "with messages" if row["control"] else "without",
}
"""Groupings of the trials on boards: the words before a group's name, and the group of a trial."""


def show(rows: Rows) -> Outcome:
    """Show totals, in all and by group, and the trials that came closest to their guarantees."""
    total = together(rows)
    worst = sorted(row["worst"] for row in rows)
    panel = LinePanel(
        title="longest delay of each trial",
        x=ChartAxis(label="longest delay / guarantee", low=0),
        y=ChartAxis(label="share of trials", low=0, high=1),
        curves=[
            ChartCurve(
                label="trials",
                x=worst,
                y=[(place + 1) / len(worst) for place, _ in enumerate(worst)],
                marker=False,
                steps=True,
            )
        ],
        references=[Reference(label="guarantee", value=1.0, axis="x")],
    )
    return Outcome(
        chart=Chart(panels=[panel], caption=f"{total['packets']:,} packets in {len(rows):,} trials"),
        findings=total,
        x=AxisLabel(name="longest delay / guarantee", unit=""),
        guarantees=[
            guarantee_of_packets(
                "admitted sets",
                [],
                packets=int(total["packets"]),
                lost=int(total["lost"]),
                late=int(total["broken"] + total["events"]),
                ours=True,
            )
        ],
        table=table(groups_of(rows, _groups_for(rows[0]))),
        notes=notes(rows, hashlib.sha256("".join(map(json.dumps, rows)).encode()).hexdigest()),
    )


_PORT_GROUPS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "": lambda row: f"{row['profile']}, {row['shape']}"
}
_FAILURE_GROUPS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "": lambda row: f"{row['profile']}, {row['shape']}, {row['protection']}"
}


def _groups_for(row: Mapping[str, Any]) -> Mapping[str, Callable[[Mapping[str, Any]], str]]:
    """Return the groupings of trials such as this one."""
    if "protection" in row:
        return _FAILURE_GROUPS
    return _GROUPS if "scheme" in row else _PORT_GROUPS


def groups_of(
    rows: Rows, keys: Mapping[str, Callable[[Mapping[str, Any]], str]]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield each group's name and its totals."""
    for words, key in keys.items():
        for name in sorted({key(row) for row in rows}):
            yield f"{words}{name}", together([row for row in rows if key(row) == name])


def together(rows: Rows) -> dict[str, float]:
    """Return the sums of these trials, and their largest ratio of delay to guarantee."""
    totals = {
        "trials": float(len(rows)),
        **{
            key: float(sum(row[key] for row in rows))
            for key in ("flows", "packets", "lost", "broken", "events")
        },
        "worst": max(row["worst"] for row in rows),
    }
    for key in ("failures", "lost_as_stated", "most_lost", "eliminated"):
        if key in rows[0]:
            totals[key] = float(sum(row[key] for row in rows))
    if "passages" in rows[0]:
        totals["passages"] = float(sum(row["passages"] for row in rows))
        totals["hours"] = sum(row["duration_ns"] for row in rows) / _NS_PER_HOUR
    return totals


def table(groups: Iterator[tuple[str, Mapping[str, float]]]) -> TableResult:
    """Return the table of the groups."""
    return TableResult(
        columns=["", "trials", "flows", "packets", "lost", "flows not kept", "longest delay / guarantee"],
        rows=[
            [
                name,
                *(f"{group[key]:,.0f}" for key in ("trials", "flows", "packets", "lost", "broken")),
                f"{group['worst']:.3f}",
            ]
            for name, group in groups
        ],
    )


def notes(rows: Rows, digest: str) -> list[NoteResult]:
    """Return the trials that came closest to their guarantees, and the hash of all rows."""
    tightest = sorted(rows, key=lambda row: float(row["worst"]), reverse=True)[:_TIGHTEST]
    return [
        *(
            NoteResult(
                where=f"seed {row['seed']}",
                text=", ".join(
                    [
                        *_words(row),
                        f"{row['flows']} flows",
                        f"longest delay {row['worst']:.3f} of its guarantee",
                    ]
                ),
            )
            for row in tightest
        ),
        NoteResult(where="SHA-256 of all trials", text=digest),
    ]


def _words(row: Mapping[str, Any]) -> list[str]:
    if "profile" in row:
        return [row[key] for key in ("profile", "shape", "protection") if key in row]
    return [
        row["scheme"],
        f"{row['shape']} of {row['switches']}",
        f"{' and '.join(map(str, row['sizes']))} bytes",
        f"{row['entries']} entries",
        f"sent as {row['way']}",
    ]


STUDY: Final = Study(
    size=RandomSetsSize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 5_000.0}
)


def repeat(seed: int, packets: int) -> bool:
    """Repeat a trial on boards and print it; if it fails, also the least of it that still does."""
    outcome = run_trial(seed, packets=packets)
    _print_trial(outcome)
    if outcome.failed:
        only, most_ns = narrow_down(outcome, packets=packets)
        print(f"the same with these flows only, in {most_ns / 1e9:.3f} s: {sorted(only)}")
        _print_trial(run_trial(seed, packets=packets, only=only, most_ns=most_ns))
    return not outcome.failed


def _print_trial(outcome: Trial) -> None:
    drawn, case = outcome.drawn, outcome.drawn.case
    print(
        f"seed {drawn.seed}: {case.scheme}, {drawn.shape} of {drawn.switches} switches,"
        f" {case.entries} entries, frames of {', '.join(map(str, drawn.sizes))} bytes,"
        f" {outcome.way} for {outcome.duration_ns / 1e9:.2f} s"
    )
    verdicts = {verdict.flow: verdict for verdict in outcome.verdict.flows}
    for admitted in case.admitted:
        verdict = verdicts.get(admitted.flow.id)
        if verdict is None:
            continue
        path = " ".join(hop.switch for hop in admitted.hops)
        print(
            f"  {admitted.flow.id}: {admitted.flow.rate_bps:.0f} bit/s,"
            f" {admitted.flow.burst_bytes:.0f} bytes, by {path}; {verdict.sent} sent,"
            f" {verdict.lost} lost, worst {verdict.worst:.3f}"
            f" of {admitted.guarantee_ns / 1e6:.3f} ms{'' if verdict.kept else '  BROKEN'}"
        )
    for event in outcome.verdict.events:
        print(f"  {event}")


def _main(words: Sequence[str]) -> None:
    if len(words) not in (1, 2) or not all(word.isdecimal() for word in words):
        print("random_sets: give the seed of a trial, and the packets of one if not 1000000", file=sys.stderr)
        raise SystemExit(2)
    seed, packets = (*map(int, words), 1_000_000)[:2]
    raise SystemExit(0 if repeat(seed, packets) else 1)


if __name__ == "__main__":
    _main(sys.argv[1:])
