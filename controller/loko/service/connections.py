"""Limits on the service's connections: how many, how long, and which one makes room for a new client. Pure.

A client that only holds a connection, or sends its request byte by byte, takes just one place, and not for
long. If places run out, a new client gets the place of the one that has kept the service waiting longest. So
there is always room for a client that sends a request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import Final, Self

from loko.document import InputError

OWN_FILES: Final = 192
"""Files that the service may need itself: disk, log, programs beside it, connections that are closing."""
_LEAST: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Most connections or requests of one kind at once: of all clients together, and of one address."""

    in_all: int
    by_address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Limits of all clients together. Streams and changes together leave half of the connections free."""

    connections: Limit
    streams: Limit
    """Event streams, which last."""
    changes: Limit
    """Requests that change something, which wait for switches."""

    @classmethod
    def of(cls, connections: int, *, files: int) -> Self:
        """Return limits for this many connections, as far as open files allow. Raises `InputError`."""
        places = min(connections, files - OWN_FILES)
        if places < _LEAST:
            raise InputError(
                f"this process may open {files} files, which leaves no room for clients; raise the limit to"
                f" {connections + OWN_FILES} (ulimit -n)"
            )
        return cls(
            connections=Limit(in_all=places, by_address=places // 2),
            streams=Limit(in_all=places // 4, by_address=places // 8),
            changes=Limit(in_all=places // 4, by_address=places // 8),
        )


class AddressCounter:
    """Counts connections or requests of one kind by address."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.in_all = 0
        self._by_address: dict[str, int] = {}

    def of(self, address: str) -> int:
        """Return how many there are of an address."""
        return self._by_address.get(address, 0)

    def has_room(self, address: str) -> bool:
        """Return whether one more may come from an address."""
        return self.in_all < self.limit.in_all and self.of(address) < self.limit.by_address

    def add(self, address: str) -> None:
        """Count one more."""
        self.in_all += 1
        self._by_address[address] = self.of(address) + 1

    def remove(self, address: str) -> None:
        """Count one less."""
        self.in_all -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class ConnectionPhase(Enum):
    """State of a connection that waits."""

    OPEN = auto()
    """The first byte of its first request."""
    HEADERS = auto()
    BODY = auto()
    WORKING = auto()
    """The service: the request is complete, the answer is not."""
    IDLE = auto()
    """A further request."""


CLIENT_TIMEOUT_S: Final = {
    ConnectionPhase.OPEN: 10.0,
    ConnectionPhase.HEADERS: 10.0,
    ConnectionPhase.BODY: 10.0,
}
"""How long a client may keep the service waiting in each phase. OPEN and HEADERS share one time."""
IDLE_S: Final = 30
"""How long a connection is kept for a further request: longer than clients keep theirs (httpx: 5 s), so that
none sends a request into a connection that is just being closed."""
READING_S: Final = 10.0
"""How long a client may read nothing of an answer that is waiting for it."""


@dataclass(slots=True, eq=False)
class ConnectionSlot:
    """A connection, with what it waits for and since when."""

    address: str
    since_s: float
    phase: ConnectionPhase = ConnectionPhase.OPEN
    stuck_s: float | None = None
    """Since when the client has read nothing of its answer."""
    close: Callable[[], None] = field(default=lambda: None)
    """Ends the connection at once."""
    refuse: Callable[[], None] = field(default=lambda: None)
    """Tells the client, if it still listens, that it has taken too long, and ends the connection."""

    def enter(self, phase: ConnectionPhase, now_s: float) -> None:
        """Note that the connection now waits for something else."""
        if not (self.phase is ConnectionPhase.OPEN and phase is ConnectionPhase.HEADERS):
            self.since_s = now_s
        self.phase = phase

    @property
    def waits_for_client(self) -> bool:
        """Whether the client is to act next."""
        return self.phase is not ConnectionPhase.WORKING or self.stuck_s is not None

    def is_overdue(self, now_s: float) -> bool:
        """Return whether the client has kept the service waiting for too long."""
        if self.stuck_s is not None:
            return now_s - self.stuck_s >= READING_S
        timeout_s = CLIENT_TIMEOUT_S.get(self.phase)
        return timeout_s is not None and now_s - self.since_s >= timeout_s


class ConnectionLimiter:
    """The places of all connections."""

    def __init__(self, limit: Limit) -> None:
        self._counts = AddressCounter(limit)
        self._taken: dict[ConnectionSlot, None] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, address: str, now_s: float) -> tuple[ConnectionSlot | None, ConnectionSlot | None]:
        """Return a place for a new connection of an address, and the place that was freed for it, if any.

        The caller closes the connection of the freed place. There is no place if the service is working on a
        request of every connection in the way.
        """
        loser: ConnectionSlot | None = None
        if not self._counts.has_room(address):
            loser = self._longest_waiting(address)
            if loser is None:
                return None, None
            self.free(loser)
        place = ConnectionSlot(address, now_s)
        self._taken[place] = None
        self._counts.add(address)
        return place, loser

    def free(self, place: ConnectionSlot) -> None:
        """Free the place of a connection that has ended. To call this twice does no harm."""
        if place in self._taken:
            del self._taken[place]
            self._counts.remove(place.address)

    def overdue(self, now_s: float) -> Iterator[ConnectionSlot]:
        """Return the places whose clients have kept the service waiting for too long."""
        return iter([place for place in self._taken if place.is_overdue(now_s)])

    def _longest_waiting(self, address: str) -> ConnectionSlot | None:
        """Return the place that has waited longest for its client.

        It is one of this address if that has too many, otherwise one of the address with the most.
        """
        waiting = [place for place in self._taken if place.waits_for_client]
        if self._counts.of(address) >= self._counts.limit.by_address:
            waiting = [place for place in waiting if place.address == address]
        most = max((self._counts.of(place.address) for place in waiting), default=0)
        crowd = (place for place in waiting if self._counts.of(place.address) == most)
        return min(crowd, key=lambda place: place.since_s, default=None)


class Clients:
    """Present usage by clients, and the number of refusals."""

    def __init__(self, limits: ClientLimits) -> None:
        self.places = ConnectionLimiter(limits.connections)
        self.streams = AddressCounter(limits.streams)
        self.changes = AddressCounter(limits.changes)
        self.turned_away = 0
        """Connections that got no place, or lost their place to others."""
        self.too_slow = 0
        """Connections that were closed because their client took too long."""


@lru_cache(maxsize=4096)
def client_of(host: str) -> str:
    """Return the address that limits apply to; for IPv6, the /64 network, as one client has all of it."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
