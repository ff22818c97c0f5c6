"""Limits on connections to the OpenFlow port, before any thread is made for one. Pure.

A switch needs one connection, and a second one for a moment when it begins anew. So each address may have
two for every switch that may connect from there, and a few more. A connection that has not introduced itself
in time is closed; if places run out, the one that has been silent for longest makes room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from loko.control.access import AccessList, Peer

HANDSHAKE_S: Final = 10.0
"""How long a peer may take to introduce itself. A board that finds no controller tries again after less."""
_A_SWITCH: Final = 2
"""Connections for each switch."""
_SPARE: Final = 8
"""Further connections of an address."""
_SPARE_ADDRESSES: Final = 8
"""Addresses that may have their spare connections at once."""


@dataclass(slots=True, eq=False)
class SessionSlot:
    """A connection that is counted, until it has ended."""

    address: str
    since_s: float
    is_introduced: bool = False
    """Whether its handshake is complete."""
    end: Callable[[], None] = field(default=lambda: None)
    """Ends the connection, and with it its threads. To call this twice does no harm."""


class SessionLimiter:
    """The places of all connections. Not thread-safe."""

    def __init__(self, access: AccessList) -> None:
        self._switches_at = lru_cache(maxsize=1024)(access.switches_at)
        self.in_all = _A_SWITCH * len(access) + _SPARE * _SPARE_ADDRESSES
        """The most connections at once."""
        self._taken: dict[SessionSlot, None] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._taken)

    def is_known(self, peer: Peer) -> bool:
        """Return whether any switch may connect from a peer's address."""
        return self._switches_at(peer.address, is_local=peer.is_local) > 0

    def blocking(self, peer: Peer) -> SessionSlot | None:
        """Return the place that must be left before a peer gets one; None if nothing is in its way.

        It is the one that has been silent for longest: of the peer's address if that has too many, otherwise
        of the address with the most. Raises `NoFreeSessionError` if only complete sessions are in the way.
        """
        silent = self._silent()
        of_address = self._by_address[peer.address]
        if of_address >= _A_SWITCH * self._switches_at(peer.address, is_local=peer.is_local) + _SPARE:
            silent = [place for place in silent if place.address == peer.address]
        elif len(self._taken) < self.in_all:
            return None
        if not silent:
            raise NoFreeSessionError
        return max(silent, key=lambda place: (self._by_address[place.address], -place.since_s))

    def take(self, peer: Peer, now_s: float) -> SessionSlot:
        """Return a place for a peer in whose way there is nothing."""
        place = SessionSlot(peer.address, now_s)
        self._taken[place] = None
        self._by_address[peer.address] += 1
        return place

    def free(self, place: SessionSlot) -> None:
        """Free the place of a connection that has ended."""
        del self._taken[place]
        self._by_address[place.address] -= 1
        if not self._by_address[place.address]:
            del self._by_address[place.address]

    def overdue(self, now_s: float) -> list[SessionSlot]:
        """Return the places of peers that have not introduced themselves in time."""
        return [place for place in self._silent() if now_s - place.since_s >= HANDSHAKE_S]

    def _silent(self) -> list[SessionSlot]:
        return [place for place in self._taken if not place.is_introduced]


class NoFreeSessionError(Exception):
    """Complete sessions have all places that a peer could get."""
