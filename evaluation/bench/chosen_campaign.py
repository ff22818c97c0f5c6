"""A campaign that somebody has asked for: what of which switch, and where its samples are kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

import typer

from evaluation.bench import campaign, processes
from evaluation.bench.campaign import Part, Procedure
from evaluation.bench.choice import Choice, choose
from evaluation.bench.design import Design
from evaluation.bench.findings import read_samples
from evaluation.bench.observations import Samples
from evaluation.bench.progress import announcement, measuring
from evaluation.bench.store import SampleStore
from evaluation.files import alone_in, output_directory
from evaluation.provenance import commit

_SAMPLES: Final = "samples.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCampaign:
    """Procedures, a switch, a folder."""

    procedures: tuple[Procedure, ...]
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
    ) -> Self:
        """From what the user said. Raises `InputError`."""
        chosen = choose(device)
        folder = out if out is not None else Path("results") / "bench" / Path(device).stem
        usual = Design.FULL if chosen.entry is None else Design.REDUCED
        return cls(
            procedures=procedures,
            chosen=chosen,
            folder=output_directory(folder),
            samples=samples,
            design=design or usual,
            seed=seed,
        )

    def parts(self, design: Design | None = None) -> list[Part]:
        """All parts, measured or not."""
        return _parts(self.procedures, self.samples, design or self.design)

    def estimates(self) -> Iterator[str]:
        """How long each design takes, a line each."""
        with alone_in(self.folder), self._store() as store:
            for design in Design:
                line = announcement(self.parts(design), store.parts(), real_time=self._real_time)
                yield f"--design {design}: {line}"

    def measure(self) -> Samples:
        """Measure what is missing; all samples. The switch is left alone if nothing is missing."""
        todo = self.parts()
        wanted = {part.key for part in todo}
        with alone_in(self.folder), self._store() as store:
            if not store.parts().issuperset(wanted):
                make = partial(_parts, self.procedures, self.samples, self.design)
                with measuring(todo, store.parts(), real_time=self._real_time) as tell:
                    processes.run(
                        self.chosen,
                        make,
                        store,
                        seed=self.seed,
                        jobs=len(os.sched_getaffinity(0)),
                        on_part=tell,
                    )
                left_out = sum(count for part, _, _, count in store.samples() if part in wanted)
                if left_out and self._real_time:
                    typer.echo(f"left out: {left_out} samples that this machine's stalls spoilt", err=True)
            return read_samples(store)

    def begun(self) -> str:
        """The day on which it began."""
        with self._store() as store:
            return store.begun

    @property
    def _real_time(self) -> bool:
        return self.chosen.entry is not None

    def _store(self) -> SampleStore:
        # What samples depend on; with anything else they are measured anew.
        parameters = {
            **self.chosen.identity,
            "samples": self.samples,
            "seed": self.seed,
            "commit": commit(),
        }
        return SampleStore(self.folder / _SAMPLES, parameters)


def _parts(procedures: tuple[Procedure, ...], samples: int, design: Design) -> list[Part]:
    return campaign.parts(procedures, samples=samples, design=design)
