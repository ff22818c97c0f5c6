"""The whole of step 1 as parts, each measured once and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.bench.cables import UnpluggedError
from evaluation.bench.device import Device
from evaluation.bench.part import Design, Extent, Key, Part, Procedure
from evaluation.bench.procedures import EVERY_PROCEDURE
from evaluation.bench.store import SampleStore
from evaluation.runner import RunError
from loko.scenario import Scenario


def parts(
    procedures: Sequence[Procedure],
    *,
    samples: int,
    scenario: Scenario | None = None,
    design: Design = Design.FULL,
) -> list[Part]:
    """The parts of these procedures. `scenario` restricts the combinations of Table 1, or else `design`."""
    extent = Extent(samples=samples, design=design, scenario=scenario)
    return [part for procedure in procedures for part in procedure.parts(extent)]


def simulated_parts(procedures: Sequence[Procedure], *, samples: int, design: Design) -> list[Part]:
    """The same, as far as it makes sense of a switch that is not of the board's kind, in virtual time."""
    extent = Extent(samples=samples, design=design)
    makers = [procedure.simulated_parts for procedure in procedures]
    return [part for make in makers if make is not None for part in make(extent)]


def every_key() -> set[Key]:
    """Of all parts that a campaign may have measured, whatever its design."""
    return {part.key for design in Design for part in parts(EVERY_PROCEDURE, samples=1, design=design)}


def run(
    device: Device,
    todo: list[Part],
    store: SampleStore,
    *,
    seed: int,
    on_part: Callable[[Part], None],
    on_refusal: Callable[[Part, RunError], None] | None = None,
) -> None:
    """Measure the parts that the store does not hold; `on_part` hears of each one that is complete.

    A switch that falls silent, as a Zodiac FX may, is switched off and on where the bench can, and the part
    is measured anew, once. A part that a switch does not let be measured ends the campaign, unless
    `on_refusal` wants to hear of it. A cable without link always ends it: `UnpluggedError`.
    """
    there = store.complete_among(part.key for part in todo)
    for part in todo:
        try:
            if part.key not in there:
                try:
                    _measure(device, part, store, seed)
                except UnpluggedError:
                    raise
                except RunError:
                    if not device.revive():
                        raise
                    _measure(device, part, store, seed)
        except RunError as error:
            if on_refusal is None or isinstance(error, UnpluggedError):
                raise
            on_refusal(part, error)
        on_part(part)


def _measure(device: Device, part: Part, store: SampleStore, seed: int) -> None:
    for size, (times, left_out) in part.measured(device, seed):
        store.keep(part.key, size, times, left_out)
    store.complete(part.key)
