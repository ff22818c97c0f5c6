"""The cases to check: each rule in use on small networks, and weaker rules that must be refuted there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from loko_testbed.simulation.state_models import network, slots
from loko_testbed.simulation.state_models.boards import (
    FallsAtFullRate,
    ForgetfulBoards,
    ForgetfulPackets,
    GoneAtRelease,
    PacketRule,
    PacketsGoneAtRelease,
    ShareRule,
)
from loko_testbed.simulation.state_models.explorer import ExplorationResult
from loko_testbed.simulation.state_models.network import ModelFlow, Rule
from loko_testbed.simulation.state_models.ports import (
    FallsAtOnce,
    FixedAtRelease,
    ForgetfulPorts,
    PortRule,
    WithoutBusyPeriods,
)
from loko_testbed.simulation.state_models.slots import SlotRule

IN_USE: Final = "in use"


@dataclass(frozen=True, kw_only=True)
class ModelCase:
    """A rule on a network."""

    scheme: str
    network: str
    rule: str
    """`IN_USE`: it must hold; any other must be refuted."""
    search: Callable[[], ExplorationResult]


class _Network(NamedTuple):
    """A network, the rule in use there, and weaker ones by what is wrong with them."""

    scheme: str
    name: str
    flows: tuple[ModelFlow, ...]
    limits: tuple[int, ...]
    rule: Callable[[Sequence[ModelFlow], Sequence[int]], Rule[Any]]
    weaker: Mapping[str, Callable[[Sequence[ModelFlow], Sequence[int]], Rule[Any]]]


_LINE: Final = (
    ModelFlow("A", (0, 1, 2, 3, 4), 1, leaves=True, at_once=True),
    *(ModelFlow(f"X{server}", (server,), 4, at_once=True) for server in (1, 2, 3)),
    ModelFlow("N", (4,), 5, at_once=True),
)
"""A flow along five servers leaves; others come at three of them, and a newcomer at the last."""
_BUSY: Final = (
    ModelFlow("A", (0,), 4, leaves=True),
    ModelFlow("B", (0,), 1, 2),
    ModelFlow("C", (0,), 1, 3),
    ModelFlow("N", (0,), 4),
)
"""Flows that use five sixths of a server keep it busy behind a burst that leaves."""
_JITTER: Final = (
    ModelFlow("A", (0,), 4, leaves=True),
    ModelFlow("F", (0, 1), 1, 2),
    ModelFlow("G", (1,), 1, 3),
    ModelFlow("N", (1,), 4),
)
"""Before it leaves, a burst pushes the frames of another flow together, which go on to a second server."""
_RING: Final = (
    ModelFlow("A", (0, 1), 2, leaves=True),
    ModelFlow("B", (1, 2), 1, 4, leaves=True),
    ModelFlow("C", (2, 0), 1, leaves=True),
)
"""Paths that form a cycle; all flows come and go."""
_FULL: Final = (
    ModelFlow("A", (0, 1), 2, 6, leaves=True),
    ModelFlow("B", (1,), 1, 2, leaves=True),
    ModelFlow("C", (1,), 2, 3, leaves=True),
)
"""All of the second switch's rate is used."""
_JOIN: Final = (
    ModelFlow("A", (0, 2), 2, leaves=True),
    ModelFlow("B", (1, 2), 2, leaves=True),
    ModelFlow("X", (0,), 4),
    ModelFlow("Y", (1,), 4),
    ModelFlow("N", (2,), 4),
)
"""Two flows leave that others hold up on their way to the switch at which they meet."""

_AT_ONCE: Final = "forgets a released flow at once"
_NO_BACKLOG: Final = "leaves no backlog"
_NOTHING_ON_ITS_WAY: Final = "takes no frame to be on its way"
_NETWORKS: Final = (
    _Network(
        "ports",
        "line of five",
        _LINE,
        (5, 5, 5, 5, 5),
        PortRule,
        {"fixes the time by the bounds at the release": FixedAtRelease, _AT_ONCE: ForgetfulPorts},
    ),
    _Network("ports", "one busy port", _BUSY, (6,), PortRule, {"omits busy periods": WithoutBusyPeriods}),
    _Network("ports", "two ports", _JITTER, (5, 6), PortRule, {"lowers bounds at once": FallsAtOnce}),
    _Network("ports", "ring of three", _RING, (4, 4, 4), PortRule, {_AT_ONCE: ForgetfulPorts}),
    _Network(
        "full-rate",
        "two switches",
        _FULL,
        (3, 5),
        ShareRule,
        {_NO_BACKLOG: ForgetfulBoards, "lowers the backlog at the full rate": FallsAtFullRate},
    ),
    _Network("full-rate", "two that join", _JOIN, (6, 6, 4), ShareRule, {_NOTHING_ON_ITS_WAY: GoneAtRelease}),
    _Network("packet-granular", "two switches", _FULL, (3, 5), PacketRule, {_NO_BACKLOG: ForgetfulPackets}),
    _Network(
        "packet-granular",
        "two that join",
        _JOIN,
        (6, 6, 4),
        PacketRule,
        {_NOTHING_ON_ITS_WAY: PacketsGoneAtRelease},
    ),
)
_SLOT_RULES: Final = {
    IN_USE: SlotRule(),
    "frees the slot at the release": SlotRule(keeps=False),
    "frees the slot after a restart": SlotRule(waits_again=False),
    "has room for one guard": SlotRule(counted_guards=1),
}

CASES: Final = (
    *(
        ModelCase(
            scheme=small.scheme,
            network=small.name,
            rule=name,
            search=partial(network.check, rule(small.flows, small.limits)),
        )
        for small in _NETWORKS
        for name, rule in {IN_USE: small.rule, **small.weaker}.items()
    ),
    *(
        ModelCase(scheme="slots", network="one path", rule=name, search=partial(slots.check, rule))
        for name, rule in _SLOT_RULES.items()
    ),
)


def check_case(number: int) -> dict[str, Any]:
    """Check the case of this number, and return the result as JSON holds it."""
    case = CASES[number]
    found = case.search()
    return {
        "scheme": case.scheme,
        "network": case.network,
        "rule": case.rule,
        "states": found.states,
        "counterexample": found.counterexample and list(found.counterexample),
        "as_expected": (found.counterexample is None) == (case.rule == IN_USE),
    }
