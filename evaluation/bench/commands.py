"""The command `loko bench`: step 1, from a switch to its profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
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
from evaluation.bench.design import Design
from evaluation.bench.device import wire_of
from evaluation.bench.findings import find, read_samples
from evaluation.bench.live.commands import check, judge
from evaluation.bench.profile_document import action_offsets, form_of, measured_profile
from evaluation.bench.progress import announcement, measuring
from evaluation.bench.store import SampleStore
from evaluation.files import alone_in, output_directory, write_atomically
from evaluation.provenance import commit
from loko.device import load_profile

bench_app = typer.Typer(
    no_args_is_help=True, help="Measure a switch and derive its profile (step 1 of Loko)."
)

_SAMPLES: Final = "samples.sqlite"
_US: Final = 1000

Row = dict[str, Any]

bench_app.command("analyse")(analyse_captures)
bench_app.command("check")(check)
bench_app.command("preconditions")(judge)

DeviceOption = Annotated[str, typer.Option(help="A profile: its board in virtual time. Or an inventory.")]
OutOption = Annotated[Path | None, typer.Option(help="Folder of samples. Default: results/bench/DEVICE.")]
SamplesOption = Annotated[int, typer.Option(min=3, max=100_000, help="Samples of each combination.")]
DesignOption = Annotated[
    Design | None,
    typer.Option(help="All of Table 1, or what tells every number. Default: full in virtual time only."),
]
EstimateOption = Annotated[bool, typer.Option("--estimate", help="Only say how long it would take.")]
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
        design: DesignOption = None,
        estimate: EstimateOption = False,
        seed: SeedOption = 1,
        as_json: JsonOption = False,
    ) -> None:
        campaign_of = _Campaign.of((procedure,), device, out=out, samples=samples, design=design, seed=seed)
        if estimate:
            campaign_of.estimate()
        else:
            _print(procedure, campaign_of.measure()[procedure], as_json)


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
    design: DesignOption = None,
    estimate: EstimateOption = False,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Do the whole campaign and write profile.toml, each number with its source and range.

    What is measured already is not measured again. Numbers that the campaign does not measure are those of
    the device's own profile, and named.

    Example: loko bench all --device zodiac-fx --out results/bench/zodiac-fx
    """
    whole = _Campaign.of(campaign.PROCEDURES, device, out=out, samples=samples, design=design, seed=seed)
    if estimate:
        whole.estimate()
        return
    whole.measure()
    folder, chosen = whole.folder, whole.chosen
    with whole.store() as store:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Campaign:
    """What is to be measured of which switch, and where it is kept."""

    procedures: tuple[Procedure, ...]
    device: str
    chosen: Choice
    folder: Path
    samples: int
    design: Design
    seed: int

    @classmethod
    def of(
        cls,
        procedures: tuple[Procedure, ...],
        device: str,
        *,
        out: Path | None,
        samples: int,
        design: Design | None,
        seed: int,
    ) -> _Campaign:
        """From what the user said. Raises `InputError`."""
        chosen = choose(device)
        usual = Design.FULL if chosen.entry is None else Design.REDUCED
        return cls(
            procedures=procedures,
            device=device,
            chosen=chosen,
            folder=_folder(device, out),
            samples=samples,
            design=design or usual,
            seed=seed,
        )

    @property
    def real_time(self) -> bool:
        """Whether it takes as long as it takes."""
        return self.chosen.entry is not None

    def parts(self, design: Design) -> list[Part]:
        """All parts, measured or not."""
        return campaign.parts(self.procedures, samples=self.samples, design=design)

    def store(self) -> SampleStore:
        """Where the samples are."""
        # What samples depend on; with anything else they are measured anew.
        parameters = {
            **self.chosen.identity,
            "samples": self.samples,
            "seed": self.seed,
            "commit": commit(),
        }
        return SampleStore(self.folder / _SAMPLES, parameters)

    def estimate(self) -> None:
        """Say how long it takes, for each design."""
        with alone_in(self.folder), self.store() as store:
            for design in Design:
                line = announcement(self.parts(design), store.parts(), real_time=self.real_time)
                typer.echo(f"--design {design}: {line}")

    def measure(self) -> dict[Procedure, list[Row]]:
        """Measure what is missing; a row for each part and length of frame."""
        todo = self.parts(self.design)
        with (
            alone_in(self.folder),
            self.store() as store,
            self.chosen.opened(self.seed) as bench,
            measuring(todo, store.parts(), real_time=self.real_time) as tell,
        ):
            campaign.run(bench, todo, store, seed=self.seed, on_part=tell)
            found, left_out = read_samples(store), _left_out(store, todo)
        if left_out and self.real_time:
            typer.echo(
                f"left out and measured again: {left_out} samples during which this machine stalled", err=True
            )
        return {
            procedure: [
                _row(part.name, size, times)
                for part in todo
                if part.procedure == procedure
                for size, times in sorted(found[part.key].items())
            ]
            for procedure in self.procedures
        }


def _left_out(store: SampleStore, todo: Sequence[Part]) -> int:
    wanted = {part.key for part in todo}
    return sum(left_out for part, _, _, left_out in store.samples() if part in wanted)


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
