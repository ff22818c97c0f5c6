"""Bounds of whole paths: whether frames ever exceed them, and what more fits with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from loko.admission.planning import plan
from loko.admission.schemes import VARIANTS, admission_of
from loko.document import StrictModel
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, lab_of
from loko_testbed.reproduce.chart import Chart, ChartAxis, ChartCurve, LinePanel, Reference
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.worst_case.port_frames import whole_path_trial
from loko_testbed.simulation.worst_case.port_trial import port_trial

_PACKETS: Final = 5_000
_SWITCHES: Final = 9
_FRAME_BYTES: Final = 1518
_DEADLINES_MS: Final = (0.3, 0.4, 0.5, 0.7)
_TARGETS_MS: Final = (0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2)


class WholePathsSize(StrictModel):
    """How much is measured."""

    networks: int
    """Random networks in which simulations search for a frame that is later than the bound of its path."""
    runs: int
    """Simulations of each network."""
    sets: int
    """Random admitted sets whose packets the simulator of switches judges."""


class WholePathsTask(NamedTuple):
    """One network, one set, or the flows that fit a line within one deadline."""

    part: str
    number: int
    runs: int = 0

    def __str__(self) -> str:
        return f"{self.part} {self.number}"


def tasks(size: WholePathsSize, seed: int) -> list[WholePathsTask]:
    """Return the tasks of all parts; trials have consecutive seeds, those of seed 1 from 0 on."""
    first = (seed - 1) * max(size.networks, size.sets)
    return [
        *(WholePathsTask("network", first + number, size.runs) for number in range(size.networks)),
        *(WholePathsTask("set", first + number) for number in range(size.sets)),
        *(WholePathsTask("fit", number) for number in range(len(_DEADLINES_MS))),
    ]


def measure(task: WholePathsTask) -> Rows:
    """Carry out a task; a network without bounds yields no row."""
    return _MEASURES[task.part](task)


def _network(task: WholePathsTask) -> Rows:
    trial = whole_path_trial(task.number, runs=task.runs)
    return [] if trial is None else [_row(task, worst=trial.worst, of_sum=trial.of_sum)]


def _set(task: WholePathsTask) -> Rows:
    verdict = port_trial(task.number, packets=_PACKETS, is_by_path=True).verdict
    return [_row(task, worst=verdict.worst, packets=verdict.packets, broken=len(verdict.broken))]


def _fit(task: WholePathsTask) -> Rows:
    lab, deadline_ms = _line(), _DEADLINES_MS[task.number]
    rows = [
        _row(
            task,
            deadline_ms=deadline_ms,
            target_ms=target_ms,
            flows=_fitting(lab, deadline_ms, "ports", target_ms),
        )
        for target_ms in _TARGETS_MS
    ]
    by_path = _fitting(lab, deadline_ms, "ports-whole-paths", None)
    return [*rows, _row(task, deadline_ms=deadline_ms, flows=by_path)]


_MEASURES: Final[Mapping[str, Callable[[WholePathsTask], Rows]]] = {
    "network": _network,
    "set": _set,
    "fit": _fit,
}


def _row(task: WholePathsTask, **values: float) -> dict[str, Any]:
    keys = ("worst", "of_sum", "packets", "broken", "deadline_ms", "target_ms", "flows")
    return {"part": task.part, "number": task.number, **{key: values.get(key) for key in keys}}


def _fitting(lab: Lab, deadline_ms: float, scheme: str, target_ms: float | None) -> int:
    """Return how many flows over four switches each fit, asked for one after another along the line."""
    flows = [
        Flow(
            id=f"f{number}",
            source=f"h{number % (_SWITCHES - 3)}",
            destination=f"h{number % (_SWITCHES - 3) + 3}",
            udp_source=5_000 + number,
            udp_destination=6_000 + number,
            rate_bps=50e6,
            burst_bytes=2.0 * _FRAME_BYTES,
            frame_bytes=_FRAME_BYTES,
        )
        for number in range(36)
    ]
    deadlines_ns = dict.fromkeys((flow.id for flow in flows), deadline_ms * 1e6)
    admission = admission_of(
        lab,
        VARIANTS[scheme],
        loko_scenario(entries=60, packet_sizes_bytes=(_FRAME_BYTES,)),
        target_ns=None if target_ms is None else target_ms * 1e6,
        deadlines_ns=deadlines_ns,
    )
    return len(plan(lab, flows, admission, deadlines_ns=deadlines_ns).accepted)


def _line() -> Lab:
    names = range(_SWITCHES)
    return lab_of(
        {
            "name": "line",
            "title": "a line of ideal switches",
            "switches": {
                f"s{n}": {"datapath_id": f"00:00:02:00:00:00:01:{n:02x}", "profile": "ideal-1g"}
                for n in names
            },
            "hosts": {f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"10.0.0.{n + 1}/24"} for n in names},
            "links": [
                *({"a": f"h{n}", "b": f"s{n}:1"} for n in names),
                *({"a": f"s{n}:2", "b": f"s{n + 1}:3"} for n in names[:-1]),
            ],
        }
    )


def show(rows: Rows) -> Outcome:
    """Show the longest delays over the bounds, and the flows that fit by the deadline."""
    networks, sets, fits = ([row for row in rows if row["part"] == part] for part in _MEASURES)
    by_path = {row["deadline_ms"]: row["flows"] for row in fits if row["target_ms"] is None}
    best = {
        deadline_ms: max(
            (row["flows"], row["target_ms"])
            for row in fits
            if row["deadline_ms"] == deadline_ms and row["target_ms"] is not None
        )
        for deadline_ms in by_path
    }
    findings = {
        "networks": float(len(networks)),
        "network_worst": max(row["worst"] for row in networks),
        "least_of_sum": min(row["of_sum"] for row in networks),
        "sets": float(len(sets)),
        "set_packets": float(sum(row["packets"] for row in sets)),
        "set_worst": max(row["worst"] for row in sets),
        "broken_flows": float(sum(row["broken"] for row in sets)),
    }
    for deadline_ms, flows in by_path.items():
        name = f"{deadline_ms:g}".replace(".", "_")
        findings |= {f"fit_{name}_ms_by_path": flows, f"fit_{name}_ms_by_target": best[deadline_ms][0]}
    curves = [_distribution("random networks", networks), _distribution("random sets", sets)]
    return Outcome(
        chart=Chart(
            panels=[
                LinePanel(
                    title="longest delay of a trial",
                    x=ChartAxis(label="longest delay / bound", low=0),
                    y=ChartAxis(label="share of trials", low=0, high=1),
                    curves=curves,
                    references=[Reference(label="bound", value=1.0, axis="x")],
                ),
                LinePanel(
                    title=f"flows over four switches on a line of {_SWITCHES}",
                    x=ChartAxis(label="deadline [ms]", low=0),
                    y=ChartAxis(label="flows that fit", low=0),
                    curves=[
                        ChartCurve(label="whole paths", x=list(by_path), y=list(by_path.values())),
                        ChartCurve(
                            label="the best target for all ports",
                            x=list(best),
                            y=[flows for flows, _ in best.values()],
                        ),
                    ],
                ),
            ],
            columns=2,
        ),
        findings=findings,
        x=AxisLabel(name="deadline", unit="ms"),
        table=TableResult(
            columns=["deadline [ms]", "flows by whole paths", "flows by the best target", "that target [ms]"],
            rows=[[f"{key:g}", str(flows), *map(str, best[key])] for key, flows in by_path.items()],
        ),
    )


def _distribution(label: str, rows: Sequence[Mapping[str, Any]]) -> ChartCurve:
    worst = sorted(row["worst"] for row in rows)
    shares = np.arange(1, len(worst) + 1) / len(worst)
    return ChartCurve(label=label, x=worst, y=shares.tolist(), marker=False, steps=True)


STUDY: Final = Study(
    size=WholePathsSize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 600.0}
)
