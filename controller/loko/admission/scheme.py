"""What every admission scheme offers, whatever it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


class Demand(NamedTuple):
    """What an admitted flow takes of one thing that it shares with others."""

    server: str
    """Where: mostly a switch."""
    quantity: str
    """As a `Refusal` names it."""
    amount: float
    capacity: float
    """What all flows may take together; rounding is forgiven."""


class Admission(Protocol):
    """The admitted flows of a network. A request is granted at every switch of its path, or nowhere.

    A guarantee once given holds whatever is admitted and released later. What is used depends on the set of
    admitted flows, not on their order, and on what was released: that counts until it provably no longer
    matters. Time is passed in, by `advance` and `release`; requests are judged at the latest instant that
    was told, so to tell nothing is safe. Delay targets and allocations are fixed for the life of the object.
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

    def advance(self, now_ns: int) -> None:
        """Let time pass, on any clock that never goes back. What was released counts less and less."""

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None = None) -> None:
        """Strike off a flow that has sent until now, or until `sent_until_ns`.

        It counts on as long as what it has sent may matter. Raises `InputError` if it was not admitted.
        """

    def cancel(self, flow_id: str) -> None:
        """Undo the request of a flow that has sent nothing. Raises `InputError` if it was not admitted."""

    def release_all(self) -> None:
        """Begin anew, as if no flow had ever sent: for the next of several plans."""

    def passage_ns(self, flow_id: str) -> int:
        """From the last frame that a flow sends until none of it is on its way and it counts nowhere.

        Then its burst is in the debt alone.
        """

    def servers(self, admitted: Admitted) -> tuple[str, ...]:
        """The names of what a flow shares with others: mostly the switches of its path."""

    def debt(self, server: str) -> float | None:
        """What released flows that count no longer may have left there, if anything, for `restore`.

        In the scheme's own unit.
        """

    def restore(self, debts: Mapping[str, float], *, now_ns: int) -> None:
        """Take over debts that were written down, as if no time had passed since."""

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now."""

    def demands(self, admitted: Admitted) -> Iterator[Demand]:
        """What a flow that is admitted, or would be, takes of each thing that it shares.

        Flows of which the amounts exceed a capacity do not fit together. Whether those do that exceed none
        depends on the scheme: with sums of rates and bursts they do; packet-granular counts more than this.
        """
