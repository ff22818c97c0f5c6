"""The rules for released flows, checked in every state of small networks, beside weaker rules."""

from __future__ import annotations

from typing import Final, NamedTuple

from loko.document import StrictModel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.simulation.state_models import CASES, check_case


class ModelsSize(StrictModel):
    """Which models are checked."""

    networks: tuple[str, ...] = ()
    """Names of networks; none: all."""


class ModelsTask(NamedTuple):
    """A case, by its place in `CASES`."""

    case: int

    def __str__(self) -> str:
        case = CASES[self.case]
        return f"{case.scheme}, {case.network}, {case.rule}"


def tasks(size: ModelsSize, _seed: int) -> list[ModelsTask]:
    """Return the cases to check."""
    return [
        ModelsTask(place)
        for place, case in enumerate(CASES)
        if not size.networks or case.network in size.networks
    ]


def measure(task: ModelsTask) -> Rows:
    """Visit all states of a case."""
    return [check_case(task.case)]


def show(rows: Rows) -> Outcome:
    """Show the states of each case, and the steps that refute a rule."""
    return Outcome(
        chart=None,
        findings={
            "states": float(sum(row["states"] for row in rows)),
            "rules_that_hold": float(sum(row["counterexample"] is None for row in rows)),
            "rules_refuted": float(sum(row["counterexample"] is not None for row in rows)),
            "unexpected": float(sum(not row["as_expected"] for row in rows)),
        },
        x=AxisLabel(name="case", unit=""),
        table=TableResult(
            columns=["scheme", "network", "rule", "states", "outcome"],
            rows=[
                [
                    *(row[key] for key in ("scheme", "network", "rule")),
                    f"{row['states']:,}",
                    "holds"
                    if row["counterexample"] is None
                    else f"refuted by {len(row['counterexample'])} steps: {', '.join(row['counterexample'])}",
                ]
                for row in rows
            ],
        ),
    )


STUDY: Final = Study(size=ModelsSize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 60.0})
