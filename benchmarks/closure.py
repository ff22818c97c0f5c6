"""Test step 1 on itself: measure a switch as a black box, and compare the result with its profile."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import BenchmarkError, MeasuredRow
from loko.document import LABS, InputError
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
    worst,
)
from loko_testbed.measure.bench.cost_model.closure import ClosureRow as Compared
from loko_testbed.measure.bench.cost_model.profile_document import (
    Origin,
    text_of,
)
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.device_choice import choose, form_of
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.provenance import commit, today

FORM: Final = "zodiac-fx"
LIVE: Final = LABS / "bench" / "zodiac-fx-live.yml"
_SAMPLES: Final = 100
_SEED: Final = 1
_UNSEEN: Final = (1, 2, 3)
_EVERY: Final = 9
_EVERY_QUICK: Final = 23
_EVERY_LIVE: Final = 90

FoundNumbers = dict[str, Any]


def measure(
    folder: Path, *, quick: bool, live: bool, store: Path | None, tell: Callable[[str], None]
) -> dict[str, FoundNumbers]:
    """Compare for the board, for randomly perturbed switches, and if `live` for the board in real time.

    `store` is a folder of `loko bench all --out` in real time, whose samples are evaluated as well. Raises
    `BenchmarkError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        switches = {"board": _virtual(folder, FORM, _EVERY_QUICK if quick else 1, tell)}
        for seed in _UNSEEN[: 1 if quick else None]:
            path = folder / f"unseen-{seed}.toml"
            path.write_text(text_of(perturb(form_of(FORM), seed)), encoding="utf-8")
            every = _EVERY_QUICK if quick else _EVERY
            switches[f"unseen-{seed}"] = _virtual(folder, str(path), every, tell)
        if store is not None:
            switches[store.name] = _of_store(folder, store)
        if live:
            switches["live"] = _measured(
                folder,
                choose(str(LIVE)).open(_SEED),
                name="live",
                true=FORM,
                every=_EVERY_LIVE,
                tolerance=LIVE_TOLERANCE,
                tell=tell,
            )
    except (InputError, RunError) as error:
        raise BenchmarkError(str(error)) from error
    return switches


def _virtual(folder: Path, device: str, every: int, tell: Callable[[str], None]) -> FoundNumbers:
    return _measured(
        folder,
        choose(device).open(_SEED),
        name=Path(device).stem,
        true=device,
        every=every,
        tolerance=VIRTUAL_TOLERANCE,
        tell=tell,
    )


def _measured(
    folder: Path,
    opened: AbstractContextManager[BenchDevice],
    *,
    name: str,
    true: str,
    every: int,
    tolerance: float,
    tell: Callable[[str], None],
) -> FoundNumbers:
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        opened as device,
    ):
        origin = Origin(
            device=Path(device.name).stem, date=today(), commit=commit(), samples=_SAMPLES, seed=_SEED
        )
        tell(f"  {device.name}")
        todo = parts(samples=_SAMPLES, every=every)
        store = SampleStore(Path(scratch), {})
        _, profile = recover(device, store, todo, form=FORM, origin=origin)
        left_out = store.left_out(part.key for part in todo)
    return {
        **_compared(folder / f"found-{name}.toml", profile.text, true, tolerance),
        "wall_s": time.monotonic() - begun,
        "left_out": left_out,
    }


def _of_store(folder: Path, campaign: Path) -> FoundNumbers:
    """Compare the profile that `loko bench all` wrote with the board's."""
    path = campaign / "profile.toml"
    if not path.is_file():
        raise BenchmarkError(f"{path}: no profile; measure it with loko bench all --out {campaign}")
    text = path.read_text(encoding="utf-8")
    return _compared(folder / f"found-{campaign.name}.toml", text, FORM, LIVE_TOLERANCE)


def _compared(path: Path, profile: str, true: str, tolerance: float) -> FoundNumbers:
    """Write the profile to `path` and compare it with the true one.

    `path` must be unique to the switch, as profiles are cached by path.
    """
    path.write_text(profile, encoding="utf-8")
    comparison = closure(form_of(str(path)), form_of(true))
    return {
        "tolerance": tolerance,
        "rows": [asdict(row) for row in comparison.rows],
        "outside": [row.name for row in comparison.outside(tolerance)],
        "kept": dict(comparison.kept),
        "model": model_errors(load_profile(path), load_profile(true)),
    }


def rows(switches: dict[str, FoundNumbers]) -> list[MeasuredRow]:
    """Return a row with the worst value for each switch."""
    lines: list[MeasuredRow] = []
    for name, switch in switches.items():
        compared = [Compared(**row) for row in switch["rows"]]
        (largest,) = worst(compared, 1)
        within = len(compared) - len(switch["outside"])
        lines.append(
            (
                f"closure, {name}: numbers found within {switch['tolerance']:.0%}",
                f"{within} of {len(compared)}",
                f"worst {largest.error:+.2%}, {largest.name};{_outside(compared, switch['tolerance'])}"
                f" Table 2 within {max(map(abs, switch['model'].values())):.2%}"
                + (f"; {switch['left_out']} samples left out" if "left_out" in switch else ""),
            )
        )
    return lines


def _outside(compared: list[Compared], tolerance: float) -> str:
    """Describe the largest error among the times outside the tolerance."""
    off_ns = [
        abs(row.found - row.true) / PS_PER_NS
        for row in compared
        if abs(row.error) > tolerance and row.name.endswith("_ps")
    ]
    return f" of the others {len(off_ns)} are times, off by at most {max(off_ns):,.0f} ns;" if off_ns else ""


def page_table(switches: dict[str, FoundNumbers]) -> str:
    """Return a Markdown table of all values of the board, and of the errors of the other switches."""
    board, *others = switches.values()
    errors = [{_first(row): row["error"] for row in switch["rows"]} for switch in others]
    head = ["parameter", "true", "found", "error", *(f"error, {name}" for name in list(switches)[1:])]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in board["rows"]:
        cells = [f"`{row['name']}`", _plain(row["true"]), _plain(row["found"]), f"{row['error']:+.2%}"]
        cells += [
            f"{errors_of[_first(row)]:+.2%}" if _first(row) in errors_of else "" for errors_of in errors
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _first(row: dict[str, Any]) -> str:
    """Return the first parameter of a row's name, which may be a sum whose other terms vary."""
    return str(row["name"]).split(" + ", 1)[0]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6f}"


def kept_table(switches: dict[str, FoundNumbers]) -> str:
    """Return a Markdown table of the parameters that are not determined, with the reasons."""
    kept: dict[str, str] = next(iter(switches.values()))["kept"]
    lines = ["| parameter | why it is not found |", "|---|---|"]
    for why in dict.fromkeys(kept.values()):
        names = ", ".join(f"`{name}`" for name, reason in kept.items() if reason == why)
        lines.append(f"| {names} | {why} |")
    return "\n".join(lines)
