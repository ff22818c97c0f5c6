"""The whole of step 1 as parts, each measured once and kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set
from functools import partial

from loko.switch_model.scenario import Scenario
from loko_testbed.measure.bench.cables import UnpluggedError
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import Design, Key, MeasurementPart, MeasurementSize, Procedure
from loko_testbed.measure.bench.store import PartSamples, SampleStore, part_samples
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import Progress


def parts(
    procedures: Sequence[Procedure],
    *,
    samples: int,
    scenario: Scenario | None = None,
    design: Design = Design.FULL,
) -> list[MeasurementPart]:
    """Return the parts of these procedures, restricted by `scenario` if given, else by `design`."""
    extent = MeasurementSize(samples=samples, design=design, scenario=scenario)
    return [part for procedure in procedures for part in procedure.parts(extent)]


def simulated_parts(
    procedures: Sequence[Procedure], *, samples: int, design: Design
) -> list[MeasurementPart]:
    """Return the parts that make sense for a switch of another kind than the board, in virtual time."""
    extent = MeasurementSize(samples=samples, design=design)
    makers = [procedure.simulated_parts for procedure in procedures]
    return [part for make in makers if make is not None for part in make(extent)]


def counting(
    todo: Sequence[MeasurementPart], kept: Set[Key], progress: Progress, *, real_time: bool
) -> Callable[[MeasurementPart], None]:
    """Begin to show the progress of a campaign, of which `kept` is complete. Return the `on_part` of `run`.

    In real time it counts the seconds that parts are expected to take.
    """
    left_s = {part.key: part.expected_s if real_time else 1.0 for part in todo if part.key not in kept}
    progress.begin(sum(left_s.values()), len(todo) - len(left_s), "s" if real_time else "parts")

    def on_part(part: MeasurementPart) -> None:
        if part.key in left_s:
            progress.advance(str(part.key), left_s[part.key])

    return on_part


def run(
    device: BenchDevice,
    todo: list[MeasurementPart],
    store: SampleStore,
    *,
    seed: int,
    on_part: Callable[[MeasurementPart], None],
    on_refusal: Callable[[MeasurementPart, RunError], None] | None = None,
) -> None:
    """Measure the parts that the store lacks. `on_part` is called for each part that is complete.

    If a switch falls silent, as a Zodiac FX may, the bench power-cycles it if it can, and measures the part
    once more. A part that still fails ends the campaign, unless `on_refusal` is given, which is then called.
    A cable without link always ends it, with `UnpluggedError`.
    """
    measured = store.parts(partial(_measured, device=device, seed=seed))
    for part in todo:
        try:
            deque(measured.each_done([part]), maxlen=0)
        except RunError as error:
            if on_refusal is None or isinstance(error, UnpluggedError):
                raise
            on_refusal(part, error)
        on_part(part)


def _measured(part: MeasurementPart, *, device: BenchDevice, seed: int) -> PartSamples:
    try:
        return part_samples(part.measured(device, seed))
    except UnpluggedError:
        raise
    except RunError:
        if not device.revive():
            raise
        return part_samples(part.measured(device, seed))
