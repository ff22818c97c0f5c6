"""A measurement of the study as a task, of which campaigns and figures are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from loko_testbed.measure.predictability.subject import SwitchUnderTest, switch_under_test

Measured = TypeVar("Measured")
_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True, slots=True)
class Measurement(Generic[Measured]):
    """A function that measures a switch, and all that its result depends on."""

    device: str
    """Name or path of a profile, or name of a live switch."""
    function: Callable[..., Measured]
    positional: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]
    """Arguments of the function, behind the switch."""
    repetition: str = ""
    """Tells apart equal measurements in real time, where each has another result."""

    @classmethod
    def of(
        cls,
        device: str,
        function: Callable[Concatenate[SwitchUnderTest, _Arguments], Measured],
        *positional: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Measurement[Measured]:
        """Return the call of a function for a device with these arguments as a task."""
        return Measurement(device, function, positional, tuple(named.items()))

    def __str__(self) -> str:
        """Return the device, as the display of progress shows it."""
        return self.device


def measure(task: Measurement[Measured], *, live: SwitchUnderTest | None = None) -> Measured:
    """Measure the live switch if given, else the task's profile. Raises what the function raises."""
    return task.function(live or switch_under_test(task.device), *task.positional, **dict(task.named))
