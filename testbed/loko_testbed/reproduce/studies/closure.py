"""Whether the bench recovers a known switch: measured as a black box, beside the switch's own profile."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from loko.document import LABS, InputError, StrictModel
from loko.switch_model.device import load_profile
from loko.units import PS_PER_NS
from loko_testbed.measure.bench.cost_model.closure import (
    LIVE_TOLERANCE,
    VIRTUAL_TOLERANCE,
    closure,
    model_errors,
    parts,
    perturb,
    recover,
)
from loko_testbed.measure.bench.cost_model.profile_document import Origin, text_of
from loko_testbed.measure.bench.device_choice import choose, form_of
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.reproduce.chart import Chart, ChartAxis, Cloud, Reference, ScatterPanel
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, NoteResult, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
from loko_testbed.tasks.provenance import commit, today

FORM: Final = "zodiac-fx"
_LIVE: Final = LABS / "bench" / "zodiac-fx-live.yml"
_BOARD: Final = "board"
_SAMPLES: Final = 100


class ClosureSize(StrictModel):
    """Which switches are measured, and how thoroughly."""

    unseen: tuple[int, ...] = ()
    """Seeds of switches whose numbers are drawn at random, measured beside the board."""
    every: int = 1
    """The board is measured with each `every`-th of the tables of Table 1."""
    every_unseen: int = 1
    live: bool = False
    """Whether the board is measured in real time."""
    campaign: str = ""
    """The folder of a `loko bench all` on the board, which is evaluated in place of a measurement."""


class ClosureTask(NamedTuple):
    """A switch to measure."""

    switch: str
    every: int
    seed: int
    unseen: int = 0
    """The seed of a switch drawn at random; 0: the board."""
    live: bool = False
    campaign: str = ""

    def __str__(self) -> str:
        return self.switch


def tasks(size: ClosureSize, seed: int) -> list[ClosureTask]:
    """Return the switches to measure."""
    name = "live" if size.live else _BOARD
    board = ClosureTask(name, size.every, seed, live=size.live, campaign=size.campaign)
    return [
        board,
        *(ClosureTask(f"unseen-{each}", size.every_unseen, seed, unseen=each) for each in size.unseen),
    ]


def measure(task: ClosureTask) -> Rows:
    """Measure a switch, and compare what is found with the truth. Raises `InputError` or `RunError`."""
    tolerance = LIVE_TOLERANCE if task.live else VIRTUAL_TOLERANCE
    with tempfile.TemporaryDirectory(prefix="loko-closure-") as folder:
        # Profiles are cached by path, so each switch has paths of its own.
        true, found = FORM, Path(folder) / f"found-{task.switch}.toml"
        if task.unseen:
            true = str(Path(folder) / f"{task.switch}.toml")
            Path(true).write_text(text_of(perturb(form_of(FORM), task.unseen)), encoding="utf-8")
        text, left_out = _found(task, true, Path(folder))
        found.write_text(text, encoding="utf-8")
        comparison = closure(form_of(str(found)), form_of(true))
        model = model_errors(load_profile(found), load_profile(true))
    common = {"switch": task.switch, "tolerance": tolerance, "left_out": left_out}
    nothing = dict.fromkeys(("true", "found", "error"))
    return [
        *({**common, "part": "number", **asdict(row), "why": ""} for row in comparison.rows),
        *(
            {**common, "part": "model", **nothing, "name": name, "error": error, "why": ""}
            for name, error in model.items()
        ),
        *(
            {**common, "part": "kept", **nothing, "name": name, "why": why}
            for name, why in comparison.kept.items()
        ),
    ]


def _found(task: ClosureTask, true: str, folder: Path) -> tuple[str, int | None]:
    """Return the text of the profile that is found, and how many samples were left out, if that is known."""
    if task.campaign:
        path = Path(task.campaign, "profile.toml")
        if not path.is_file():
            raise InputError(f"{path}: no such file; measure it with loko bench all --out {task.campaign}")
        return path.read_text(encoding="utf-8"), None
    todo = parts(samples=_SAMPLES, every=task.every)
    store = SampleStore(folder, {})
    with choose(str(_LIVE) if task.live else true).open(task.seed) as device:
        origin = Origin(
            device=Path(device.name).stem, date=today(), commit=commit(), samples=_SAMPLES, seed=task.seed
        )
        _, profile = recover(device, store, todo, form=FORM, origin=origin)
    return profile.text, store.left_out(part.key for part in todo)


def show(rows: Rows) -> Outcome:
    """Show the error of every number that was found, and name those that cannot be."""
    switches = {row["switch"]: [each for each in rows if each["switch"] == row["switch"]] for row in rows}
    numbers = {name: _part(own, "number") for name, own in switches.items()}
    first = next(iter(switches))
    kept = _part(switches[first], "kept")
    reasons = dict.fromkeys(row["why"] for row in kept)
    errors = [{_first(row): row["error"] for row in own} for own in list(numbers.values())[1:]]
    return Outcome(
        chart=_chart(numbers),
        findings={name: value for switch, own in switches.items() for name, value in _findings(switch, own)},
        x=AxisLabel(name="number", unit=""),
        profile=FORM,
        table=TableResult(
            columns=[
                "parameter",
                "true",
                "found",
                "error",
                *(f"error, {name}" for name in list(numbers)[1:]),
            ],
            rows=[
                [
                    f"`{row['name']}`",
                    *(_plain(row[key]) for key in ("true", "found")),
                    f"{row['error']:+.2%}",
                    *(f"{own[_first(row)]:+.2%}" if _first(row) in own else "" for own in errors),
                ]
                for row in numbers[first]
            ],
        ),
        notes=[
            NoteResult(where=", ".join(f"`{row['name']}`" for row in kept if row["why"] == why), text=why)
            for why in reasons
        ],
    )


def _part(rows: Rows, part: str) -> Rows:
    return [row for row in rows if row["part"] == part]


def _findings(switch: str, rows: Rows) -> Iterator[tuple[str, float]]:
    name, numbers = switch.replace("-", "_"), _part(rows, "number")
    outside = [row for row in numbers if not abs(row["error"]) <= row["tolerance"]]
    yield f"{name}_numbers", len(numbers)
    yield f"{name}_numbers_outside", len(outside)
    yield f"{name}_largest_error_percent", 100 * max(abs(row["error"]) for row in numbers)
    off_ps = [abs(row["found"] - row["true"]) for row in outside if row["name"].endswith("_ps")]
    yield f"{name}_largest_error_outside_ns", max(off_ps, default=0) / PS_PER_NS
    yield f"{name}_table_2_percent", 100 * max(abs(row["error"]) for row in _part(rows, "model"))
    if rows[0]["left_out"] is not None:
        yield f"{name}_left_out", rows[0]["left_out"]


def _chart(numbers: dict[str, Rows]) -> Chart:
    [tolerance] = {row["tolerance"] for own in numbers.values() for row in own}
    panel = ScatterPanel(
        title="error of every number",
        x=ChartAxis(label="number"),
        y=ChartAxis(label="error [%]"),
        clouds=[
            Cloud(
                label=switch,
                x=[float(place) for place, _ in enumerate(own)],
                y=[100 * row["error"] for row in own],
            )
            for switch, own in numbers.items()
        ],
        references=[Reference(label="tolerance", value=100 * sign * tolerance) for sign in (-1, 1)],
    )
    return Chart(panels=[panel])


def _first(row: dict[str, Any]) -> str:
    """Return the first parameter of a row's name, which may be a sum whose other terms vary."""
    return str(row["name"]).split(" + ", 1)[0]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6f}"


STUDY: Final = Study(
    size=ClosureSize,
    tasks=tasks,
    measure=measure,
    show=show,
    estimate_s={"virtual": 180.0, "live": 600.0},
    needs_root=True,
)
