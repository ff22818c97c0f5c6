"""The campaign that a user asked for: which procedures, which switch, and where its samples are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import typer

from loko.document import InputError
from loko_testbed.cli.bench.progress import announcement, measuring
from loko_testbed.cli.bench.workers import workers_of
from loko_testbed.measure.bench import campaign, processes
from loko_testbed.measure.bench.device_choice import DeviceChoice, choose
from loko_testbed.measure.bench.inventory import SoftwareSwitch
from loko_testbed.measure.bench.part import Design, Key, MeasurementPart, Procedure, Samples
from loko_testbed.measure.bench.procedures import PROCEDURES
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.executor import Executor, Workers
from loko_testbed.tasks.files import lock_folder, output_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCampaign:
    """The procedures to measure, the switch, and the folder for the samples."""

    procedures: tuple[Procedure, ...]
    chosen: DeviceChoice
    folder: Path
    samples: int
    design: Design
    seed: int
    workers: Workers
    """The workers that measure in virtual time."""

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
        jobs: int | None,
        executor: Executor,
        scheduler: str | None,
    ) -> Self:
        """Build a campaign from the options of a command. Raises `InputError`."""
        chosen = choose(device)
        workers = workers_of(jobs, executor, scheduler, real_time=chosen.inventory is not None)
        folder = out if out is not None else Path("results") / "bench" / Path(device).stem
        if chosen.is_simulated and not all(procedure.simulated_parts for procedure in procedures):
            sensible = [procedure.name for procedure in PROCEDURES if procedure.simulated_parts]
            raise InputError(
                f"--device {device}: its profile is not that of a board with one slow CPU, so only"
                f" {' and '.join(sensible)} make sense"
            )
        usual = Design.REDUCED if chosen.inventory or chosen.is_simulated else Design.FULL
        return cls(
            procedures=procedures,
            chosen=chosen,
            folder=output_directory(folder),
            samples=samples,
            design=design or usual,
            seed=seed,
            workers=workers,
        )

    def parts(self, design: Design | None = None) -> list[MeasurementPart]:
        """Return all parts, measured or not."""
        return self._make(design or self.design)()

    def estimates(self) -> Iterator[str]:
        """Yield a line for each design that says how long it takes."""
        store = self._store()
        with lock_folder(self.folder):
            for design in Design:
                todo = self.parts(design)
                line = announcement(todo, _complete(store, todo), real_time=self._real_time)
                yield f"--design {design}: {line}"

    def measure(self) -> Samples:
        """Measure what is missing, and return the samples of both designs.

        If nothing is missing, the switch is not touched.
        """
        todo = self.parts()
        wanted = {part.key for part in todo}
        store = self._store()
        with lock_folder(self.folder):
            there = _complete(store, todo)
            if there != wanted:
                _ = store.begun  # asked for the first time, it is today
                with measuring(todo, there, real_time=self._real_time) as tell:
                    if isinstance(self.chosen.inventory, SoftwareSwitch):
                        self._measure_what_it_lets(todo, store, tell)
                    else:
                        make = self._make(self.design)
                        processes.run(
                            self.chosen, make, store, seed=self.seed, workers=self.workers, on_part=tell
                        )
                left_out = store.left_out(wanted)
                if left_out and self._real_time:
                    typer.echo(f"left out: {left_out} samples that this machine's stalls spoilt", err=True)
            return store.samples(part.key for design in Design for part in self.parts(design))

    def left_out(self) -> dict[tuple[Key, int], int]:
        """Return how many samples were left out, by part and frame length."""
        rows = self._store().rows(part.key for part in self.parts())
        return {(part, size): count for part, size, _, count in rows}

    def _measure_what_it_lets(
        self, todo: list[MeasurementPart], store: SampleStore, tell: Callable[[MeasurementPart], None]
    ) -> None:
        """Measure what can be measured, and print what cannot: some switches do not answer every question."""
        refused: dict[str, list[str]] = {}

        def on_refusal(part: MeasurementPart, error: RunError) -> None:
            refused.setdefault(part.key.procedure, []).append(f"{part.key.name}: {error}")

        with self.chosen.open(self.seed) as device:
            campaign.run(device, todo, store, seed=self.seed, on_part=tell, on_refusal=on_refusal)
        for procedure, reasons in refused.items():
            typer.echo(
                f"not measured: {len(reasons)} parts of {procedure}, the first one {reasons[0]}", err=True
            )

    def _make(self, design: Design) -> processes.Parts:
        make = campaign.simulated_parts if self.chosen.is_simulated else campaign.parts
        return partial(make, self.procedures, samples=self.samples, design=design)

    def begun(self) -> str:
        """Return the day on which the campaign began."""
        return self._store().begun

    @property
    def _real_time(self) -> bool:
        return self.chosen.inventory is not None

    def _store(self) -> SampleStore:
        return SampleStore(self.folder, {**self.chosen.identity, "samples": self.samples, "seed": self.seed})


def _complete(store: SampleStore, todo: list[MeasurementPart]) -> set[Key]:
    return store.complete_among(part.key for part in todo)
