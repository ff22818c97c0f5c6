"""Check that everything works together on this machine, by short live runs of two labs with every backend.

    python -m loko_testbed.cli.smoke

Judges whether frames arrive. Delays are only printed: to judge them, use `loko evaluate`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import typer

from loko.document import LABS, InputError
from loko.switch_model.flow import Flow
from loko.terminal import user_errors_end
from loko.topology.lab import Backend, Lab, load_lab
from loko.topology.requests import load_flows
from loko_testbed.live.containerlab.deployment import obstacle as no_containers
from loko_testbed.live.doctor.facts import Requirement
from loko_testbed.live.doctor.requirements import requirements
from loko_testbed.live.permission import obstacle as no_namespaces
from loko_testbed.live.runner import LiveRunner
from loko_testbed.simulation.options import Builder
from loko_testbed.simulation.runner import LOST, RunError, RunRecords
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender

LABS_AND_FLOWS: Final = (
    (LABS / "two-switch" / "lab.yml", LABS / "two-switch" / "flows.yml"),
    (LABS / "ring" / "five.yml", LABS / "ring" / "five-flows.yml"),
)
LEAST_ARRIVED: Final = 0.5
"""Least share of each flow's frames that must arrive. Coarse backends and busy machines lose some."""

_SENDERS: Final = SenderSettings(offered_load=0.9, queue_frames=100)

WITHOUT_BOARDS: Final = tuple(backend for backend in Backend if backend is not Backend.HARDWARE)
"""Every backend that needs no hardware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeCase:
    """A lab with its flows, and what its switches are."""

    lab: Lab
    flows: tuple[Flow, ...]
    backend: Backend
    builder: Builder = Builder.MININET

    def __str__(self) -> str:
        built = self.backend if self.builder is Builder.MININET else self.builder
        return f"{self.lab.name}, {built}"

    def obstacle(self, tried: Sequence[Requirement]) -> str | None:
        """Return why this machine cannot run the combination; None if it can."""
        if self.builder is Builder.CONTAINERLAB and (reason := no_containers()):
            return reason
        for part in tried:
            needed = not part.backends or (self.backend in part.backends and not part.optional)
            if needed and not part.there:
                return f"{part.name} is not there: {part.change}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """The outcome of one run."""

    passed: bool
    message: str


def combinations(backends: Sequence[Backend]) -> Iterator[SmokeCase]:
    """Yield all combinations to try; those in containers come last. Raises `InputError`."""
    loaded = [(load_lab(lab), load_flows(flows)) for lab, flows in LABS_AND_FLOWS]
    for backend, (lab, flows) in itertools.product(backends, loaded):
        yield SmokeCase(lab=lab, flows=flows, backend=backend)
    if Backend.FIRMWARE in backends:
        for lab, flows in loaded:
            yield SmokeCase(lab=lab, flows=flows, backend=Backend.FIRMWARE, builder=Builder.CONTAINERLAB)


def senders(flows: Sequence[Flow]) -> tuple[Sender, ...]:
    """Return the senders of admitted flows, each shaped by its own token bucket."""
    return tuple(_SENDERS.conforming(number, flow) for number, flow in enumerate(flows))


def judge(flows: Sequence[Flow], records: RunRecords) -> SmokeResult:
    """Judge whether enough frames of every flow arrived."""
    arrived = records.received_ns != LOST
    for number, flow in enumerate(flows):
        mine = records.flow == number
        if not mine.any():
            return SmokeResult(passed=False, message=f"{flow.id} sent nothing")
        share = float(arrived[mine].mean())
        if share < LEAST_ARRIVED:
            return SmokeResult(passed=False, message=f"of {flow.id} only {share:.0%} arrived")
    delays_ms = (records.received_ns - records.sent_ns)[arrived] / 1e6
    told = (
        f"{len(flows)} flows, {len(records)} packets, {np.count_nonzero(~arrived)} lost, "
        f"delay {np.median(delays_ms):.2f} ms (median) to {delays_ms.max():.2f} ms, "
        f"{len(records.host.stalls)} stalls"
    )
    return SmokeResult(passed=True, message=told)


def run_combination(combination: SmokeCase, seconds: float) -> SmokeResult:
    """Build the lab, send traffic for this many seconds, and judge. A failure is described in one line."""
    try:
        with LiveRunner(
            combination.lab, combination.flows, backend=combination.backend, builder=combination.builder
        ) as runner:
            status = runner.status()
            if status.connected < status.switches:
                told = f"only {status.connected} of {status.switches} switches reached the controller"
                return SmokeResult(passed=False, message=told)
            records = runner.run(senders(combination.flows), seconds=seconds, seed=1)
    except (RunError, InputError) as error:
        return SmokeResult(passed=False, message=str(error))
    return judge(combination.flows, records)


def main(
    *,
    backend: Annotated[
        list[Backend] | None, typer.Option(help="Only this backend; repeat for more. Default: every one.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Length of each run.")] = 2.0,
) -> None:
    """Short live runs of the two-switch lab and of a ring of five, with every backend that works here.

    Needs root. Status 1 if one fails or none was possible; one that this machine does not allow is told and
    left out.

    Example: sudo make smoke
    """
    with user_errors_end():
        if reason := no_namespaces():
            raise InputError(reason)
        tried = requirements(root=True)
        outcomes = [
            _outcome(combination, tried, seconds) for combination in combinations(backend or WITHOUT_BOARDS)
        ]
    if False in outcomes or True not in outcomes:
        raise typer.Exit(1)


def _outcome(combination: SmokeCase, tried: Sequence[Requirement], seconds: float) -> bool | None:
    if reason := combination.obstacle(tried):
        typer.echo(f"smoke: {combination!s:28} SKIPPED  {reason}")
        return None
    began = time.monotonic()
    verdict = run_combination(combination, seconds)
    took = time.monotonic() - began
    typer.echo(
        f"smoke: {combination!s:28} {'ok' if verdict.passed else 'FAILED':8} {verdict.message} ({took:.0f} s)"
    )
    return verdict.passed


if __name__ == "__main__":
    typer.run(main)
