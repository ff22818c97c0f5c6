"""TP: whether the switch forwards line rate on all its ports in both directions at once (section II-C).

The snake test (RFC 8239; "shoelace" in the study): two sources at the first and the last port, cables from
each even port to the next odd one, and entries that send what comes in on port 2k-1 out of port 2k and back.
A frame crosses the switch once for every pair of ports, so two sources load all of them. What RFC 2544,
section 26.1, calls throughput is the highest rate without a lost frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from os_ken.ofproto import ofproto_v1_0_parser as parser

from loko.control.os_ken_messages import flow_mod
from loko.topology.lab import Lab
from loko.topology.snake_test import HOSTS, snake_path, snake_test_lab
from loko.units import BPS_PER_MBPS
from loko_testbed.instruments.virtual_session import RefusedError
from loko_testbed.measure.predictability.marks import DimensionVerdict, Mark, Thresholds
from loko_testbed.measure.predictability.subject import FrameStream, SwitchUnderTest, evenly, transmit
from loko_testbed.measure.predictability.table_iii import VALUES, frame

FRAME_BYTES: Final[tuple[int, ...]] = VALUES["frame_bytes"]
_ANY: Final = "ideal-1g"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResult:
    """The result at one rate."""

    rate_mbps: float
    """Rate of each source, with preamble and gap."""
    received_mbps: float
    """Rate received, as the mean of both ends."""
    sent: int
    lost: int
    refused: bool = False


def snake_lab(subject: SwitchUnderTest) -> Lab:
    """Return the wiring of the snake test. Raises `InputError` if this many ports cannot be laced."""
    # Of a profile the wiring takes only the number of ports. A program of this machine has none.
    return snake_test_lab(_ANY if subject.is_software else subject.device, subject.ports)


def cables(lab: Lab) -> dict[int, int]:
    """Return the cables from ports of the switch to others."""
    return {lace.a.port: lace.b.port for lace in lab.loop_cables}


def entries(lab: Lab) -> list[bytes]:
    """Return the entries of a snake test: a frame leaves by the other port of the pair it came in by."""
    leads = cables(lab)
    leads |= {b: a for a, b in leads.items()}
    entries = []
    for source, first in zip(HOSTS, (1, len(leads) + 2), strict=True):
        come = first
        for hop in snake_path(lab, source):
            match, leave = parser.OFPMatch(in_port=come), parser.OFPActionOutput(hop.output_port, 0xFFFF)
            entries.append(flow_mod(match, [leave], priority=100, xid=come))
            come = leads.get(hop.output_port, 0)
    return entries


def measure(
    subject: SwitchUnderTest, frame_bytes: int, rate_mbps: float, *, packets: int, seed: int
) -> RateResult:
    """Send this many frames into each end at a rate. Raises `RunError`, or `InputError` for odd ports."""
    lab = snake_lab(subject)
    gap_ns = subject.slot_ns(frame_bytes) * subject.link_rate_bps / BPS_PER_MBPS / rate_mbps
    ends = ((1, subject.ports), (subject.ports, 1))
    streams = [
        FrameStream(enters=a, leaves=b, frame=frame(frame_bytes), instants_ns=evenly(packets, gap_ns))
        for a, b in ends
    ]
    try:
        streams_carried = transmit(subject, entries(lab), streams, seed=seed, cables=cables(lab))
    except RefusedError:
        return RateResult(rate_mbps=rate_mbps, received_mbps=0, sent=0, lost=0, refused=True)
    sent = sum(len(stream.sent_ns) for stream in streams_carried)
    lost = sum(stream.lost for stream in streams_carried)
    received_mbps = rate_mbps * (sent - lost) / sent
    return RateResult(rate_mbps=rate_mbps, received_mbps=received_mbps, sent=sent, lost=lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class LosslessRate:
    """The highest rate without loss of frames of one length."""

    frame_bytes: int
    mbps: float
    """Rate of each source."""
    frames_per_s: float
    """Frames that the switch then forwards on all ports: n/2 times what the two sources send."""
    is_line_rate: bool
    lost: int
    """Frames lost at line rate."""
    refused: bool = False


def find(subject: SwitchUnderTest, frame_bytes: int, *, packets: int, seed: int) -> LosslessRate:
    """Search the highest rate without loss by bisection. Raises `RunError`."""
    line_mbps = subject.link_rate_bps / BPS_PER_MBPS
    top = measure(subject, frame_bytes, line_mbps, packets=packets, seed=seed)
    low, high = 0.0, line_mbps
    if top.lost == 0 and not top.refused:
        low = line_mbps
    elif not top.refused:
        resolution = subject.pace.rate_resolution
        while high - low > resolution * high:
            middle = (low + high) / 2
            lost = measure(subject, frame_bytes, middle, packets=packets, seed=seed).lost
            low, high = (low, middle) if lost else (middle, high)
            if high < resolution * line_mbps:
                break
    per_source = low * BPS_PER_MBPS / (subject.slot_ns(frame_bytes) * subject.link_rate_bps / 1e9)
    return LosslessRate(
        frame_bytes=frame_bytes,
        mbps=low,
        frames_per_s=per_source * subject.ports,
        is_line_rate=low == line_mbps,
        lost=top.lost,
        refused=top.refused,
    )


def judge(rates: list[LosslessRate], _limits: Thresholds) -> DimensionVerdict:
    """Give the mark: line rate at every length, or unfit."""
    numbers = {f"throughput_{rate.frame_bytes}_mbps": rate.mbps for rate in rates}
    numbers["most_mpps"] = max(rate.frames_per_s for rate in rates) / 1e6
    if any(rate.refused for rate in rates):
        reason = "it refuses entries that match the port"
        return DimensionVerdict(mark=Mark.UNFIT, reasons=(reason,), numbers=numbers)
    slow = [rate for rate in rates if not rate.is_line_rate]
    if not slow:
        reason = f"line rate on all ports at every length, {numbers['most_mpps']:.4g} million frames/s"
        return DimensionVerdict(mark=Mark.FIT, reasons=(reason,), numbers=numbers)
    least = min(slow, key=lambda rate: rate.mbps)
    reason = (
        f"loses frames at line rate at {len(slow)} of {len(rates)} lengths: {least.mbps:.0f} Mbit/s a port "
        f"at {least.frame_bytes} bytes, {least.frames_per_s / 1e6:.2f} million frames/s in all"
    )
    return DimensionVerdict(mark=Mark.UNFIT, reasons=(reason,), numbers=numbers)
