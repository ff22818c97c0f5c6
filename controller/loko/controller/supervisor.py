"""All switches of a lab: which connection speaks for which switch, and whether everything is set up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from loko.controller.session import Listing, Request, Session, State
from loko.entries import FlowEntry


class Connection(Protocol):
    """An open connection to a switch. It is told apart by identity."""

    def send(self, request: Request) -> None:
        """Send one request, as one write."""

    def close(self) -> None:
        """Close the connection; more calls do no harm."""


ConnectionType = TypeVar("ConnectionType", bound=Connection)


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a switch of the lab shall hold."""

    switch: str
    entries: Sequence[FlowEntry]
    listing: Listing = Listing.OF_THE_BOARD


class Supervisor(Generic[ConnectionType]):
    """Keeps one session for each connected switch of the lab. Not for several threads at once.

    `tables` says by datapath id what each switch shall hold; `changed` is called with True when the last
    switch has become ready, with False when one is lost again; `log` gets a line for people.
    """

    def __init__(
        self,
        tables: Mapping[int, Table],
        *,
        changed: Callable[[bool], None],
        log: Callable[[str], None],
    ) -> None:
        self._tables: Final = tables
        self._changed = changed
        self._log = log
        self._sessions: dict[int, tuple[ConnectionType, Session]] = {}
        self._was_ready = False

    @property
    def ready(self) -> frozenset[str]:
        """Names of the switches that are set up."""
        return frozenset(
            self._tables[datapath_id].switch
            for datapath_id, (_, session) in self._sessions.items()
            if session.state is State.READY
        )

    def connected(self, connection: ConnectionType, datapath_id: int, now_ns: int) -> None:
        """A switch has introduced itself on a new connection. An older one of the same switch is closed."""
        table = self._tables.get(datapath_id)
        if table is None:
            self._log(f"refused datapath {datapath_id:#018x}: no switch of the lab has this id")
            connection.close()
            return
        if (old := self._sessions.pop(datapath_id, None)) is not None:
            self._log(f"{table.switch}: connected anew")
            old[0].close()
        self._log(f"{table.switch}: connected, installing {len(table.entries)} entries")
        session = Session(table.entries, table.listing)
        self._sessions[datapath_id] = (connection, session)
        self._settle(datapath_id, connection, session, session.start(now_ns))

    def disconnected(self, connection: ConnectionType) -> None:
        """A connection is gone."""
        for datapath_id, (known, _) in list(self._sessions.items()):
            if known is connection:
                del self._sessions[datapath_id]
                self._log(f"{self._tables[datapath_id].switch}: disconnected")
        self._tell()

    def handle(self, connection: ConnectionType, event: Callable[[Session], list[Request]]) -> None:
        """Pass something that a switch has sent to the session of its connection, if it has one."""
        for datapath_id, (known, session) in list(self._sessions.items()):
            if known is connection:
                was_ready = session.state is State.READY
                self._settle(datapath_id, connection, session, event(session))
                if session.state is State.READY and not was_ready:
                    self._log(f"{self._tables[datapath_id].switch}: set up and read back")

    def tick(self, now_ns: int) -> None:
        """Let time pass for all sessions."""
        for datapath_id, (connection, session) in list(self._sessions.items()):
            self._settle(datapath_id, connection, session, session.tick(now_ns))

    def _settle(
        self, datapath_id: int, connection: ConnectionType, session: Session, requests: list[Request]
    ) -> None:
        for request in requests:
            connection.send(request)
        if session.state is State.FAILED:
            self._log(f"{self._tables[datapath_id].switch}: {session.failure}; closing its connection")
            del self._sessions[datapath_id]
            connection.close()
        self._tell()

    def _tell(self) -> None:
        is_ready = len(self.ready) == len(self._tables)
        if is_ready != self._was_ready:
            self._was_ready = is_ready
            self._changed(is_ready)
