"""What every admission scheme offers, whatever it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from loko.admission.answer import Admitted, Refusal
from loko.flow import Flow
from loko.network import Hop


class Share(NamedTuple):
    """How much of one thing is used of what a switch's allocation allows."""

    quantity: str
    """Such as rate, burst, entries; a `Refusal` names the same."""
    used: float
    allowed: float
    unit: str

    @property
    def fraction(self) -> float:
        """Used over allowed; 0 if nothing is allowed."""
        return self.used / self.allowed if self.allowed else 0.0


class Usage(NamedTuple):
    """What the admitted flows, and the control traffic, use of one switch."""

    shares: tuple[Share, ...]
    delay_ns: float
    """The bound on the delay that the switch guarantees to every flow, now and later."""

    def share(self, quantity: str) -> Share:
        """The share of that name. Raises `KeyError`."""
        for share in self.shares:
            if share.quantity == quantity:
                return share
        raise KeyError(quantity)

    def used(self, quantity: str) -> float:
        """What is used of it. Raises `KeyError`."""
        return self.share(quantity).used


class Admission(Protocol):
    """The admitted flows of a network. A request is granted at every switch of its path, or nowhere.

    A guarantee once given holds whatever is admitted later. What is used depends on the set of admitted
    flows only, not on their order or on what was released in between.
    """

    @property
    def scheme(self) -> str:
        """Name of the scheme, as `--allocation` takes it."""

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer, without admitting anything."""

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""

    def release_all(self) -> None:
        """Give back what all flows use: as `release` of each, but without looking at them."""

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now."""
