"""The command `loko bench`: step 1, from a switch to its profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Printed

from evaluation.bench import campaign
from evaluation.bench.campaign import Part, Procedure
from evaluation.bench.captures.command import analyse_captures
from evaluation.bench.choice import Choice, choose
from evaluation.bench.data_plane import PAPER_SAMPLES
from evaluation.bench.device import wire_of
from evaluation.bench.findings import find, read_samples
from evaluation.bench.live.commands import check, judge
from evaluation.bench.profile_document import action_offsets, form_of, measured_profile
from evaluation.bench.store import SampleStore
from evaluation.files import alone_in, output_directory, write_atomically
from evaluation.progress import terminal_bar
from evaluation.provenance import commit
from loko.device import load_profile

bench_app = typer.Typer(
    no_args_is_help=True, help="Measure a switch and derive its profile (step 1 of Loko)."
)

_SAMPLES: Final = "samples.sqlite"
_US: Final = 1000

bench_app.command("analyse")(analyse_captures)
bench_app.command("check")(check)
bench_app.command("preconditions")(judge)

DeviceOption = Annotated[str, typer.Option(help="A profile: its board in virtual time. Or an inventory.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder of samples. Default: results/bench/DEVICE.")]
SamplesOption = Annotated[int, typer.Option(min=3, max=100_000, help="Samples of each combination.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same samples in virtual time.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _command(procedure: Procedure, text: str) -> None:
    """Make the command of one procedure; they differ in nothing but what they measure."""

    @bench_app.command(procedure, help=f"{text}\n\nExample: loko bench {procedure} --device zodiac-fx")
    def command(
        *,
        device: DeviceOption = "zodiac-fx",
        out: OutOption = None,
        samples: SamplesOption = PAPER_SAMPLES,
        seed: SeedOption = 1,
        as_json: JsonOption = False,
    ) -> None:
        rows = _measure((procedure,), device, out, samples, seed)[procedure]
        _print(procedure, rows, as_json)


_command("dp-time", "Processing time of frames, every combination of Table 1 (section 3.3, equation 4).")
_command("cp-time", "Processing time of messages (section 3.2, equations 1 to 3).")
_command("interference", "What frames cost that do not come out: drops, misses, copies.")
_command("throughput", "Highest rate without loss, by binary search (section 3.4).")
_command("buffer", "Backlog at the first loss of a burst (section 3.5).")


@bench_app.command("all")
def measure_all(
    *,
    device: DeviceOption = "zodiac-fx",
    out: OutOption = None,
    samples: SamplesOption = PAPER_SAMPLES,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Do the whole campaign and write profile.toml, each number with its source and range.

    What is measured already is not measured again. Numbers that the campaign does not measure are those of
    the device's own profile, and named.

    Example: loko bench all --device zodiac-fx --out results/bench/zodiac-fx
    """
    folder, chosen = _folder(device, out), choose(device)
    _measure(campaign.PROCEDURES, device, out, samples, seed)
    with SampleStore(folder / _SAMPLES, _parameters(chosen, samples, seed)) as store:
        found = read_samples(store)
    form, known = form_of(chosen.form), load_profile(chosen.form)
    transit_ps = known.integrated_switch.transit_ps.value
    findings = find(found, wire_of(known.ports), action_offsets(form), transit_ps)
    profile = measured_profile(
        form, findings, name=f"{Path(device).stem}-measured", title=f"Measured: {Path(device).stem}"
    )
    write_atomically(folder / "profile.toml", profile.text.encode())
    summary = {
        "profile": str(folder / "profile.toml"),
        "measured": len(profile.measured),
        "not_measured": list(profile.kept),
        "loop_us": round(findings.loop_ns / _US, 3),
        "interrupted": findings.interrupted,
        "buffer_frames": {str(size): frames for size, frames in findings.capacity_frames.items()},
        "equation_6_worst_error": max(map(abs, findings.equation_6_error.values()), default=None),
        "unidentified": list(findings.costs.unidentified),
    }
    if as_json:
        typer.echo(json.dumps(summary, indent=1))
        return
    for key, value in summary.items():
        typer.echo(f"{key.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")


Row = dict[str, Any]


def _measure(
    procedures: tuple[Procedure, ...], device: str, out: Path | None, samples: int, seed: int
) -> dict[Procedure, list[Row]]:
    """Measure what is missing; a row for each part and length of frame."""
    folder, chosen = _folder(device, out), choose(device)
    todo = campaign.parts(procedures, samples=samples)
    with (
        alone_in(folder),
        SampleStore(folder / _SAMPLES, _parameters(chosen, samples, seed)) as store,
        chosen.opened(seed) as bench,
        _progress(len(todo)) as tell,
    ):
        campaign.run(bench, todo, store, seed=seed, on_part=tell)
        found = read_samples(store)
    return {
        procedure: [
            _row(part.name, size, times)
            for part in todo
            if part.procedure == procedure
            for size, times in sorted(found[part.key].items())
        ]
        for procedure in procedures
    }


def _row(name: str, size: int, times: Any) -> Row:
    low, middle, high = np.percentile(times, (5, 50, 95))
    return {
        "what": name,
        "frame_bytes": size or None,
        "samples": len(times),
        "min": int(times.min()),
        "p5": float(low),
        "p50": float(middle),
        "p95": float(high),
        "max": int(times.max()),
    }


def _folder(device: str, out: Path | None) -> Path:
    return output_directory(out if out is not None else Path("results") / "bench" / Path(device).stem)


def _parameters(chosen: Choice, samples: int, seed: int) -> Row:
    """What samples depend on; with anything else they are measured anew."""
    return {**chosen.identity, "samples": samples, "seed": seed, "commit": commit()}


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    with terminal_bar() as bar:
        task = bar.add_task("measuring", total=total, unit="parts")

        def tell(part: Part) -> None:
            bar.update(task, advance=1, description=part.key)

        yield tell


def _print(procedure: Procedure, rows: list[Row], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"procedure": procedure, "rows": rows}, indent=1))
        return
    is_time = procedure in {"dp-time", "cp-time", "interference"}
    unit, scale = ("us", _US) if is_time else ("Mbit/s", 1e6) if procedure == "throughput" else ("frames", 1)
    table = Printed(
        "what", "bytes", *(f"{name} [{unit}]" for name in ("min", "p5", "p50", "p95", "max")), box=None
    )
    for row in rows:
        numbers = (f"{row[name] / scale:.2f}" for name in ("min", "p5", "p50", "p95", "max"))
        table.add_row(row["what"], str(row["frame_bytes"] or ""), *numbers)
    Console().print(table)
