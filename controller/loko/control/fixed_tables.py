"""Keeps the planned tables in all switches of a lab. Events and `now` in, effects out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loko.control.driver import OWN_MARK, Segment, SessionPhase, driver_of
from loko.control.entries import FlowEntry
from loko.control.notices import Diagnostic, Failed, Installed, LinkChanged, Rejected, Removed
from loko.control.unsafe_entries import refuse_unsafe_entries
from loko.control.versions import CODECS
from loko.control.wire import WireReply
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab

_COOKIES: Final = OWN_MARK << 48


@dataclass(slots=True)
class TableEffects:
    """Tables to install."""

    sends: list[tuple[str, Segment]] = field(default_factory=list)
    """A switch, and what goes to it in one write."""
    closes: list[str] = field(default_factory=list)
    """Switches whose connection is to be closed."""
    lines: list[str] = field(default_factory=list)
    """Lines for the log."""


class FixedTables:
    """Keeps the planned entries in every switch, in their order. Not thread-safe."""

    def __init__(
        self,
        lab: Lab,
        tables: Mapping[str, Sequence[FlowEntry]],
        openflow: OpenFlow = OpenFlow.V1_0,
    ) -> None:
        """`tables` has the entries that each switch shall hold, by its name.

        Raises `InputError` as `driver_of` and `refuse_unsafe_entries` do.
        """
        for name, switch in lab.switches.items():
            refuse_unsafe_entries(switch, openflow, tables[name])
        self.drivers = {
            name: driver_of(switch, openflow=openflow, fixed=True) for name, switch in lab.switches.items()
        }
        self._effects = TableEffects()
        self._were_ready: set[str] = set()
        for name, driver in self.drivers.items():
            for place, entry in enumerate(tables[name], start=1):
                driver.ensure(CODECS[openflow].entry_of(entry, cookie=_COOKIES | place))

    @property
    def ready(self) -> bool:
        """Whether every switch holds just what is planned. To become ready, its own count must agree."""
        return all(map(self._is_ready, self.drivers))

    def set_quiet(self, *, quiet: bool) -> None:
        """Set whether something is being measured: then entries are renewed only if necessary (quirk 51)."""
        for driver in self.drivers.values():
            driver.quiet = quiet

    def effects(self) -> TableEffects:
        """Return, and forget, what is to be done since the last call."""
        taken, self._effects = self._effects, TableEffects()
        return taken

    def connected(self, now_ns: int, name: str) -> None:
        """Note that a switch has introduced itself; an older connection of it is gone."""
        driver = self.drivers[name]
        if driver.phase is not SessionPhase.AWAY:
            driver.disconnected()
        self._tell(name, "connected, installing its entries")
        self._carry(name, driver.connected(now_ns))

    def disconnected(self, name: str) -> None:
        """Note that the connection of a switch is gone."""
        self.drivers[name].disconnected()
        self._tell(name, "disconnected")
        self._carry(name, ())

    def reply(self, now_ns: int, name: str, reply: WireReply) -> None:
        """Take in an answer of a switch."""
        self._carry(name, self.drivers[name].reply(now_ns, reply))

    def tick(self, now_ns: int) -> None:
        """Let time pass. Call it several times a second."""
        for name, driver in self.drivers.items():
            self._carry(name, driver.poll(now_ns))

    def _is_ready(self, name: str) -> bool:
        driver = self.drivers[name]
        holds = driver.holds_all if name in self._were_ready else driver.counted
        return holds and not driver.foreign_entries

    def _carry(self, name: str, segments: Iterable[Segment]) -> None:
        driver = self.drivers[name]
        for notice in driver.notices():
            match notice:
                case Rejected(reason=reason):
                    self._tell(name, f"does not take an entry: {reason}; trying again")
                case Diagnostic(text=text):
                    self._tell(name, text)
                case Failed(reason=reason):
                    self._effects.closes.append(name)
                    self._tell(name, f"{reason}; closing its connection")
                case Installed() | Removed() | LinkChanged():
                    pass
        self._effects.sends += [(name, segment) for segment in segments]
        is_ready = self._is_ready(name)
        if is_ready and name not in self._were_ready:
            self._tell(name, "set up and counted")
        self._were_ready = self._were_ready | {name} if is_ready else self._were_ready - {name}

    def _tell(self, name: str, text: str) -> None:
        self._effects.lines.append(f"{name}: {text}")
