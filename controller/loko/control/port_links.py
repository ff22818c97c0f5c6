"""The links of a switch's ports, as OpenFlow describes them (1.0.0, section 5.2.1; 1.3.4, section 7.2.1).

A switch describes all its ports when it connects (FEATURES_REPLY in 1.0, PORT_DESC in 1.3), and one whose
link has changed in a PORT_STATUS. What a board tells, and when, is in docs/driver.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_DOWN: Final = 1
"""OFPPC_PORT_DOWN of the configuration, and OFPPS_LINK_DOWN of the state."""
_DELETED: Final = 1
"""OFPPR_DELETE: the switch no longer has the port."""
_REASON: Final = struct.Struct("!B7x")


@dataclass(frozen=True, slots=True)
class PortsReply:
    """Link states that a switch reports of its ports."""

    xid: int
    """Of the question; 0 if the switch was not asked."""
    are_up: Mapping[int, bool]
    """Whether a port has a link, by number. Ports that are not listed are as before."""
    more: bool = False
    """Whether another message with the same xid follows."""


@dataclass(frozen=True, slots=True)
class PortFormat:
    """How a version of OpenFlow describes a port."""

    description: struct.Struct
    """Unpacks number, configuration and state."""
    most: int
    """OFPP_MAX: higher numbers are no sockets of the switch."""

    def described(self, xid: int, data: bytes, *, more: bool = False) -> PortsReply:
        """Decode descriptions that follow each other; the rest of a torn one is passed over.

        A port that was taken out of service counts as one without a link.
        """
        whole = len(data) // self.description.size * self.description.size
        return PortsReply(
            xid,
            {
                number: not (configuration | state) & _DOWN
                for number, configuration, state in self.description.iter_unpack(data[:whole])
                if 0 < number <= self.most
            },
            more,
        )

    def changed(self, xid: int, body: bytes) -> PortsReply:
        """Decode the body of a PORT_STATUS. Raises `struct.error` if it is too short."""
        (reason,) = _REASON.unpack_from(body)
        number, _, _ = self.description.unpack_from(body, _REASON.size)
        if reason == _DELETED:
            return PortsReply(xid, {number: False} if 0 < number <= self.most else {})
        return self.described(xid, body[_REASON.size :])


PORTS_10: Final = PortFormat(struct.Struct("!H22xII16x"), most=0xFF00)
PORTS_13: Final = PortFormat(struct.Struct("!I28xII24x"), most=0xFFFF_FF00)
