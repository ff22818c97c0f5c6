"""A driver and the emulated board that it manages, in either version of OpenFlow."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from board_end import BoardEnd, Pair

from loko.control import wire, wire13
from loko.control.dialect import DIALECTS
from loko.control.driver import Driver
from loko.control.entries import FlowEntry, five_tuple_entry
from loko.control.wire import WireEntry
from loko.control.wire13 import WireEntry13
from loko.switch_model.scenario import OpenFlow

MARK: Final = 0x4C6F
MS: Final = 1_000_000
S: Final = 1_000_000_000
HARM: Final = {
    OpenFlow.V1_0: ("stalled", "hangs", "was split", "longer than", "a DELETE has left", "is lost"),
    OpenFlow.V1_3: ("stalled", "hangs", "was split", "longer than", "multipart"),
}
"""Words in events that reveal a mistake of the driver."""


def flow_entry(number: int, *, port: int = 3, priority: int = 100) -> FlowEntry:
    return five_tuple_entry(
        priority=priority,
        nw_src=IPv4Address("10.0.0.1"),
        nw_dst=IPv4Address("10.0.0.2"),
        tp_src=1 + number % 60_000,
        tp_dst=7000,
        output_port=port,
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """The version that both speak, and whether the board has the firmware's quirks."""

    openflow: OpenFlow
    quirks: str = "firmware"

    def __str__(self) -> str:
        return f"{self.openflow.value}-{self.quirks}"

    def entry(
        self, number: int, *, mark: int = MARK, port: int = 3, priority: int = 100
    ) -> WireEntry | WireEntry13:
        flow, cookie = flow_entry(number, port=port, priority=priority), mark << 48 | number
        if self.openflow is OpenFlow.V1_3:
            return wire13.entry_of(flow, cookie=cookie)
        return wire.entry_of(flow, cookie=cookie)

    def driver(self, **options: object) -> Driver:
        values: dict[str, object] = {"capacity": 128, "own_mark": MARK, **options}
        return Driver(dialect=DIALECTS[self.openflow], **values)  # type: ignore[arg-type]

    def end(self, config: dict[str, object] | None = None, *, start_ns: int = 3 * S) -> BoardEnd:
        return BoardEnd({"quirks": self.quirks, **(config or {})}, start_ns=start_ns, openflow=self.openflow)

    def pair(self, config: dict[str, object] | None = None, **options: object) -> Pair:
        return Pair(self.driver(**options), self.end(config))

    def added(self, xid: int, entry: WireEntry | WireEntry13) -> bytes:
        """Return the FLOW_MOD with which another controller adds an entry."""
        if isinstance(entry, WireEntry13):
            return wire13.encode(wire13.AddEntry(xid, entry))
        return wire.encode(wire.AddEntry(xid, entry))


V1_0: Final = Setting(OpenFlow.V1_0)
V1_3: Final = Setting(OpenFlow.V1_3)
V1_3_SPEC: Final = Setting(OpenFlow.V1_3, "spec")
SETTINGS: Final = (V1_0, V1_3, V1_3_SPEC)


def table(pair: Pair) -> list[tuple[int, bytes, bytes]]:
    """Return cookie, match and actions of every entry of the board. In 1.0 the match is left empty."""
    if pair.end.openflow is OpenFlow.V1_3:
        return sorted(
            (int.from_bytes(flow.head[8:16], "big"), flow.oxms, flow.instructions)
            for flow in pair.end.board.flows13()
        )
    return sorted((flow.cookie, b"", b"".join(flow.actions)) for flow in pair.end.board.flows())


def expected(*entries: WireEntry | WireEntry13) -> list[tuple[int, bytes, bytes]]:
    """Return the table that has exactly these entries, in the form of `table`."""
    return sorted(
        (entry.cookie, entry.match if isinstance(entry, WireEntry13) else b"", entry.actions)
        for entry in entries
    )


def assert_unharmed(pair: Pair) -> None:
    harm = HARM[pair.end.openflow]
    assert not [event for event in pair.end.events if any(word in event for word in harm)]
    assert pair.end.is_open
