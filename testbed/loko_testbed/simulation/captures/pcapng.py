"""pcapng files with several interfaces, nanosecond stamps and comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

_NAME, _RESOLUTION, _COMMENT, _FLAGS = 2, 9, 1, 2
"""Codes of options of blocks (IETF draft-ietf-opsawg-pcapng, sections 4.1 to 4.3)."""
_NANOSECONDS: Final = bytes([9])
_SNAP_BYTES: Final = 1 << 18
_INBOUND, _OUTBOUND = 1, 2


class CapturedPacket(NamedTuple):
    """A frame at an interface."""

    at_ns: int
    """When its first bit passed, since the epoch of the file."""
    interface: int
    is_outbound: bool
    data: bytes
    """Without frame check sequence."""
    comment: str
    """Empty: none."""


def write_pcapng(path: Path, interfaces: Sequence[str], packets: Iterable[CapturedPacket]) -> None:
    """Write a file with these interfaces and packets. Raises `OSError`."""
    from dpkt import pcapng  # noqa: PLC0415 - seldom needed

    with path.open("wb") as file:
        file.write(bytes(pcapng.SectionHeaderBlockLE()))
        for name in interfaces:
            described = pcapng.InterfaceDescriptionBlockLE(snaplen=_SNAP_BYTES)
            described.opts = _options((_NAME, name.encode()), (_RESOLUTION, _NANOSECONDS))
            file.write(bytes(described))
        for packet in packets:
            high, low = divmod(packet.at_ns, 1 << 32)
            block = pcapng.EnhancedPacketBlockLE(
                iface_id=packet.interface, ts_high=high, ts_low=low, pkt_data=packet.data
            )
            direction = _OUTBOUND if packet.is_outbound else _INBOUND
            comment = [(_COMMENT, packet.comment.encode())] if packet.comment else []
            block.opts = _options(*comment, (_FLAGS, direction.to_bytes(4, "little")))
            file.write(bytes(block))


def _options(*options: tuple[int, bytes]) -> list[Any]:
    from dpkt import pcapng  # noqa: PLC0415 - as above

    return [
        *(pcapng.PcapngOptionLE(code=code, data=data) for code, data in options),
        pcapng.PcapngOptionLE(),
    ]
