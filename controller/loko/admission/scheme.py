"""The interface of every admission scheme, whatever it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from loko.admission.answer import Admitted, Refusal
from loko.switch_model.control_traffic import ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.margin import LimitTest
from loko.switch_model.scenario import Scenario
from loko.topology.conditions import SchemeConditions
from loko.topology.lab import Lab
from loko.topology.network import Hop


class ResourceShare(NamedTuple):
    """How much of one quantity is used at a switch, and how much its allocation allows."""

    quantity: str
    """Such as rate, burst, entries, as `Refusal.quantity` names it."""
    used: float
    allowed: float
    unit: str

    @property
    def fraction(self) -> float:
        """Used over allowed; 0 if nothing is allowed."""
        return self.used / self.allowed if self.allowed else 0.0


_OF_EVERY_FLOW: Final = frozenset({"rate", "burst", "entries"})
"""Quantities of a whole switch. Those of a port have its number in their name."""


class Usage(NamedTuple):
    """Resources of one switch that admitted flows and control traffic use."""

    shares: tuple[ResourceShare, ...]
    delay_ns: float
    """The bound on the delay that the switch guarantees to every flow, now and later."""

    @property
    def is_full(self) -> bool:
        """Whether no flow can cross the switch: each takes some of a quantity that is used up.

        A full port or class is no reason, as flows may leave by another; nor is a delay at its limit, as it
        need not grow with every flow.
        """
        return any(share.used >= share.allowed for share in self.shares if share.quantity in _OF_EVERY_FLOW)

    def share(self, quantity: str) -> ResourceShare:
        """Return the share of a quantity. Raises `KeyError`."""
        for share in self.shares:
            if share.quantity == quantity:
                return share
        raise KeyError(quantity)

    def used(self, quantity: str) -> float:
        """Return how much of a quantity is used. Raises `KeyError`."""
        return self.share(quantity).used


class ResourceDemand(NamedTuple):
    """How much an admitted flow takes of one quantity that it shares with others."""

    server: str
    """Where it is shared: mostly a switch."""
    quantity: str
    """As `Refusal.quantity` names it."""
    amount: float
    capacity: float
    """How much all flows may take together, with some slack for rounding."""


class Admission(Protocol):
    """The admitted flows of a network. A request is granted at every switch of its path, or nowhere.

    A guarantee once given holds whatever is admitted and released later. Usage depends on the set of admitted
    flows, not on their order, and on released flows, which count until they provably no longer matter. Time
    is passed in by `advance` and `release`. Requests are judged at the latest instant passed in, so not
    passing any is safe. Delay targets and allocations are fixed for the life of the object.
    """

    @property
    def scheme(self) -> str:
        """Name of the scheme, as `--allocation` takes it."""

    @property
    def conditions(self) -> SchemeConditions:
        """The conditions on which its guarantees hold."""

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """

    def advance(self, now_ns: int) -> None:
        """Let time pass, on any clock that never goes back. Released flows count less and less."""

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Release a flow that has sent until now, or until `sent_until_ns`.

        It still counts as long as what it has sent may matter. Raises `InputError` if it was not admitted.
        """

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""

    def rename(self, flow_id: str, flow: Flow) -> Admitted:
        """Give an admitted flow another id and other ports; `flow` is the same in all else.

        Raises `InputError` if it was not admitted, or these are in use.
        """

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent: for the next of several plans."""

    def drain_time_ns(self, flow_id: str) -> int:
        """Return the time from a flow's last frame until no frame is on its way and the flow counts nowhere.

        From then on, only the residual backlog holds its burst.
        """

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """Return the names of the servers that a flow shares with others: mostly the switches of its path."""

    def residual_backlog(self, server: str) -> float | None:
        """Return what released flows that no longer count may have left at a server, if anything.

        It is in the scheme's own unit, for `restore_backlogs`.
        """

    def restore_backlogs(self, backlogs: Mapping[str, float], *, now_ns: int) -> None:
        """Take over stored residual backlogs by server, as if no time had passed since."""

    def usage(self, switch: str) -> Usage:
        """Return what is used of a switch now."""

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """Yield how much a flow that is admitted, or would be, takes of each quantity that it shares.

        Flows whose amounts together exceed a capacity do not fit together. Whether flows fit that exceed none
        depends on the scheme: with sums of rates and bursts they do; packet-granular counts more than this.
        """

    def falls_if_slower(self) -> LimitTest | None:
        """Return the test of which promise falls if switches are slower (`loko.switch_model.margin`).

        None if nothing is promised, or while released flows still count.
        """


class MakeAdmission(Protocol):
    """A function that makes an empty admission control of one scheme."""

    def __call__(
        self, lab: Lab, scenario: Scenario, *, traffic: ControlTraffic | None, padding: int | None
    ) -> Admission:
        """Return it for a lab; see `loko.admission.schemes.admission_of`.

        Raises `InputError` for a lab that the scheme cannot describe.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PluggedInScheme:
    """The admission scheme of another package, which an entry point names (docs/plug-ins.md)."""

    admission: MakeAdmission
    """Makes an admission control whose `scheme` is the name of the entry point."""
    conditions: SchemeConditions
    """The conditions on which its guarantees hold; a baseline, which guarantees nothing, says so there."""
    supports_release: bool = True
    """Whether flows may be released while others stay. `loko serve` takes no other scheme."""
    is_monotone: bool = False
    """Whether every part of a set that fits is known to fit, which `loko plan --largest` rests on."""
