"""OpenFlow sessions in captured TCP segments: whose they are, and what comments say of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from loko.control.framing import whole_messages
from loko_testbed.simulation.captures.control_stream import Payload
from loko_testbed.simulation.captures.quirk_comments import ReplyQuirks
from loko_testbed.simulation.quirks import has_quirk

_ETHERNET_BYTES: Final = 14
_IPV4: Final = b"\x08\x00"
_TCP: Final = 6
_IP_BYTES, _TCP_BYTES = 20, 20
_SYN, _ACK = 0x02, 0x10
_FEATURES_REPLY: Final = 6
_DATAPATH_ID: Final = slice(8, 16)


class TcpSegment(NamedTuple):
    """A segment between a switch and a controller."""

    connection: bytes
    """Address and port of the switch's end."""
    is_from_switch: bool
    is_opening: bool
    """Whether the switch asks for a new connection with it."""
    payload: bytes

    @classmethod
    def parse(cls, frame: bytes, controller_port: int) -> Self | None:
        """Return the segment in a frame; None if it has none to or from that port."""
        ip = frame[_ETHERNET_BYTES:]
        if frame[12:14] != _IPV4 or len(ip) < _IP_BYTES + _TCP_BYTES or ip[9] != _TCP:
            return None
        tcp = ip[4 * (ip[0] & 15) : int.from_bytes(ip[2:4])]
        if len(tcp) < _TCP_BYTES or len(tcp) < 4 * (tcp[12] >> 4):
            return None
        source, destination = int.from_bytes(tcp[0:2]), int.from_bytes(tcp[2:4])
        if controller_port not in (source, destination):
            return None
        is_from_switch = destination == controller_port
        connection = ip[12:16] + tcp[0:2] if is_from_switch else ip[16:20] + tcp[2:4]
        is_opening = tcp[13] & (_SYN | _ACK) == _SYN
        return cls(connection, is_from_switch, is_opening, tcp[4 * (tcp[12] >> 4) :])


@dataclass(slots=True)
class OpenFlowSession:
    """A connection of a switch to a controller."""

    switch: str | None = None
    """None until it is known."""
    replies: ReplyQuirks = field(default_factory=ReplyQuirks)

    def comments(self, payload: Payload, quirks: Mapping[str, object]) -> list[str]:
        """Return what always deviates from OpenFlow in the next payload; `quirks` are settings by switch."""
        setting = "spec" if self.switch is None else quirks[self.switch]
        return [reply.comment for reply in self.replies.of(payload) if has_quirk(setting, reply.name)]


class OpenFlowSessions:
    """The sessions of a lab, told apart by the datapath ids in the switches' FEATURES_REPLY."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """`names` are those of the switches by datapath id."""
        self._names = names
        self._sessions: dict[bytes, OpenFlowSession] = {}

    def session_of(self, segment: TcpSegment) -> OpenFlowSession:
        """Return the session of a segment, and learn from it whose it is."""
        if segment.is_opening or segment.connection not in self._sessions:
            self._sessions[segment.connection] = OpenFlowSession()
        session = self._sessions[segment.connection]
        if session.switch is None and segment.is_from_switch:
            for message in whole_messages(segment.payload)[0]:
                if message[1] == _FEATURES_REPLY:
                    session.switch = self._names.get(int.from_bytes(message[_DATAPATH_ID]))
        return session
