"""Comments for frames of known flows: which packet of which flow it is, and what is guaranteed to it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from loko.admission import Admitted
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.units import NS_PER_MS
from loko_testbed.simulation.traffic import Sender
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET

_ADDRESSES: Final = struct.Struct("!4s4sHH")
_ADDRESSES_AT: Final = 26
"""IPv4 addresses and UDP ports follow each other in a frame without tags and options."""
_ETHERTYPE_IPV4: Final = b"\x08\x00"
_IP_WITHOUT_OPTIONS: Final = 0x45
_UDP: Final = 17


class KnownFlow(NamedTuple):
    """A flow that comments name."""

    id: str
    destination: str
    """Name of the receiving host, with the interface if it has several."""
    guarantee_ns: float | None
    """None: nothing is guaranteed to it."""

    def comment(self, sequence: int | None = None) -> str:
        """Return the comment for one of its packets, with its number if that is known."""
        number = "" if sequence is None else f", packet {sequence}"
        promised = "" if self.guarantee_ns is None else f", guarantee {_ms(self.guarantee_ns)} ms"
        return f"flow {self.id}{number}{promised}"

    def arrival(self, sequence: int, delay_ns: int) -> str:
        """Return the comment for a packet at its receiver."""
        is_late = self.guarantee_ns is not None and delay_ns > self.guarantee_ns
        return f"{self.comment(sequence)}, arrived after {_ms(delay_ns)} ms{', LATE' if is_late else ''}"


class KnownPacket(NamedTuple):
    """A packet of a known flow."""

    flow: KnownFlow
    sequence: int
    """As the testbed's own senders number packets."""


@dataclass(frozen=True, slots=True)
class KnownFlows:
    """The flows of a lab that comments name, by what their frames have."""

    _flows: Mapping[tuple[bytes, bytes, int, int], KnownFlow]

    @classmethod
    def admitted(cls, lab: Lab, admitted: Iterable[Admitted]) -> Self:
        """Return the flows of an admitted set."""
        return cls.guaranteed(lab, ((accepted.flow, accepted.guarantee_ns) for accepted in admitted))

    @classmethod
    def guaranteed(cls, lab: Lab, flows: Iterable[tuple[Flow, float | None]]) -> Self:
        """Return these flows, each with its guarantee in ns, if it has one."""
        return cls(
            {_key(lab, flow): KnownFlow(flow.id, flow.destination, promised) for flow, promised in flows}
        )

    @classmethod
    def sent(
        cls,
        lab: Lab,
        senders: Iterable[Sender],
        routed: Iterable[Flow],
        guarantees_ns: Mapping[int, float],
    ) -> Self:
        """Return the flows of senders, called as the routed flow with the same ports if there is one.

        `guarantees_ns` is by the number of the sender's flow.
        """
        ids = {_key(lab, flow): flow.id for flow in routed}
        keys = {_key(lab, sender): sender for sender in senders}
        return cls(
            {
                key: KnownFlow(ids.get(key, sender.label), sender.destination, guarantees_ns.get(sender.flow))
                for key, sender in keys.items()
            }
        )

    def flow_of(self, frame: bytes) -> KnownFlow | None:
        """Return the flow of a frame without FCS; None if it is of none."""
        if (
            len(frame) < _ADDRESSES_AT + _ADDRESSES.size
            or frame[12:14] != _ETHERTYPE_IPV4
            or frame[14] != _IP_WITHOUT_OPTIONS
            or frame[23] != _UDP
        ):
            return None
        return self._flows.get(_ADDRESSES.unpack_from(frame, _ADDRESSES_AT))

    def packet_of(self, frame: bytes) -> KnownPacket | None:
        """Return the packet that a frame of the testbed's own senders is; None if it is of no flow."""
        flow = self.flow_of(frame)
        if flow is None or len(frame) < SEQUENCE_OFFSET + 4:
            return None
        return KnownPacket(flow, int.from_bytes(frame[SEQUENCE_OFFSET : SEQUENCE_OFFSET + 4]))


def _key(lab: Lab, flow: Flow | Sender) -> tuple[bytes, bytes, int, int]:
    source, destination = lab.hosts[flow.source], lab.hosts[flow.destination]
    return source.ip.packed, destination.ip.packed, flow.udp_source, flow.udp_destination


def _ms(value_ns: float) -> str:
    """Return a time in milliseconds, to the nanosecond."""
    return f"{value_ns / NS_PER_MS:.6f}"
