"""The allocation `optimised`: delay targets of the switches, chosen for an expected traffic mix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loko.admission import Admitted
from loko.admission.packets.admission import PacketAdmission, default_targets
from loko.document import InputError
from loko.switch_model.control_traffic import NO_MESSAGES, ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab

PARTS: Final = (0.45, 0.55, 0.65, 0.75, 0.85, 0.92, 1.0)
"""Targets to try, as fractions of the largest."""

Score = tuple[float, float]
"""The worth of the accepted flows, then the negative sum of the targets, so that stricter targets win."""


def optimised_targets(
    lab: Lab,
    scenario: Scenario,
    samples: Sequence[Sequence[Flow]],
    *,
    largest_ns: Mapping[str, float] | None = None,
    rounds: int = 1,
    worth: Callable[[Admitted], float] = lambda _: 1.0,
    traffic: ControlTraffic = NO_MESSAGES,
    padding: int | None = None,
) -> dict[str, float]:
    """Return the delay targets in ns with which most flows of all samples fit, each requested in order.

    A smaller target leaves less room in that switch, but also less jitter, and so smaller bursts, in those
    after it. First all switches get the same fraction of `largest_ns` (by default the paper's full-rate D).
    Then, in each of `rounds`, each switch is moved by one step if that admits more flows, or as many with a
    stricter guarantee. A flow that is `worth` nothing, such as one whose guarantee is too long, is not
    accepted. `traffic` and `padding` are those of the admission. Raises `InputError` if no flow fits,
    whatever the targets are.
    """
    limits = largest_ns or default_targets(lab, scenario)
    tried: dict[tuple[int, ...], Score] = {}

    def targets(steps: Sequence[int]) -> dict[str, float]:
        return {name: PARTS[step] * limits[name] for name, step in zip(lab.switches, steps, strict=True)}

    def score(steps: tuple[int, ...]) -> Score:
        if steps not in tried:
            tried[steps] = accepted(targets(steps))
        return tried[steps]

    def accepted(chosen: Mapping[str, float]) -> Score:
        try:
            admission = PacketAdmission(lab, scenario, chosen, traffic=traffic, padding=padding)
        except InputError:  # a target that not even one frame keeps
            return -1, 0.0
        value = 0.0
        for flows in samples:
            value += sum(_requested(admission, flow, worth) for flow in flows)
            admission.release_all()
        return value, -sum(chosen.values())

    uniform = [(step,) * len(lab.switches) for step in range(len(PARTS))]
    best = max(uniform, key=score)
    for _ in range(rounds):
        for place in range(len(lab.switches)):
            moved = [
                (*best[:place], best[place] + step, *best[place + 1 :])
                for step in (-1, 1)
                if 0 <= best[place] + step < len(PARTS)
            ]
            best = max([best, *moved], key=score)
    if score(best)[0] <= 0:
        raise InputError("expected traffic: no flow of it fits, whatever the delay targets are")
    return targets(best)


def _requested(admission: PacketAdmission, flow: Flow, worth: Callable[[Admitted], float]) -> float:
    """Request a flow and return its worth; 0 if it is refused. A worthless flow is cancelled."""
    answer = admission.request(flow)
    if not isinstance(answer, Admitted):
        return 0.0
    if not (value := worth(answer)):
        admission.cancel(flow.id)
    return value
