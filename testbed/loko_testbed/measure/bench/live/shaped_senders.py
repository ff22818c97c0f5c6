"""Measures a real sender on this machine: mgen in front of tc's tbf, on a cable of its own.

Figures 3a and 3b of the Loko paper agree with senders that need some time per frame beside that of its tokens
(docs/senders.md). Whether a sender does depends on its kernel, its timers and its generator. So it is
measured where the senders run: as root, best on the bare metal of a testbed.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.flow import Flow
from loko.units import BPS_PER_MBPS
from loko_testbed.instruments.network_namespace import own_network
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.live.capture import TcpdumpTap, stamps_ns
from loko_testbed.live.generator import Generator
from loko_testbed.live.shaping import TbfParameters, shape
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.traffic import Sender

_PAUSE_FRAMES: Final = 10
FRAME_BYTES: Final = 306
_NEAR: Final = "sender"
_FAR: Final = "nobody"
_SOURCE: Final = IPv4Address("10.9.0.1")
_SINK: Final = IPv4Address("10.9.0.2")
_SINK_MAC: Final = "02:00:00:00:00:02"
_SETTLE_S: Final = 0.3
_TAP_S: Final = 0.3
"""How long the tap watches the gaps. Counters measure the rate, so that the tap hardly disturbs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderUnderTest:
    """One sender to measure."""

    name: str
    rate_bps: int
    """Rate of the shaper, which counts frames with their FCS. Its bucket holds one frame."""
    shaped: bool
    senders: SenderSettings
    line_rate_bps: int

    @property
    def flow(self) -> Sender:
        """The sender as every figure describes it."""
        flow = Flow(
            id=self.name,
            source=_NEAR,
            destination=_FAR,
            udp_source=5000,
            udp_destination=6000,
            rate_bps=float(self.rate_bps),
            burst_bytes=float(FRAME_BYTES),
            frame_bytes=FRAME_BYTES,
        )
        return self.senders.conforming(0, flow)

    @property
    def offered_bps(self) -> int:
        """Rate that the generator hands over."""
        return int(self.rate_bps * self.senders.offered_load)


_FULL: Final = SenderSettings(offered_load=1.5)
CASES: Final = (
    *(
        SenderUnderTest(
            name=f"{rate_mbps} Mbit/s{'' if shaped else ', no shaper'}",
            rate_bps=rate_mbps * BPS_PER_MBPS,
            shaped=shaped,
            senders=_FULL,
            line_rate_bps=line_rate_mbps * BPS_PER_MBPS,
        )
        for rate_mbps, line_rate_mbps in ((45, 100), (450, 1_000))
        for shaped in (True, False)
    ),
    SenderUnderTest(
        name="5.4 Mbit/s, bursts of 400",
        rate_bps=5_412_000,
        shaped=True,
        senders=SenderSettings(burst_frames=400, offered_load=0.5, queue_frames=1000),
        line_rate_bps=100_000_000,
    ),
)
"""Silo's two senders of figure 3, each with and without its shaper, and long bursts before QJump's.

The generator tries to offer half as much again as the shaper passes, so that frames always wait.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderMeasurement:
    """Measurement of one sender."""

    name: str
    token_us: float
    """Time that the tokens of a frame take; without a shaper, the time between two offered frames."""
    offered_pps: float
    """Rate that the generator is configured to offer."""
    accepted_pps: float
    """Rate that reached the shaper, whether it then passed or was dropped."""
    sent_pps: float
    frame_us: float
    """Mean time per frame while sending."""
    gap_us: tuple[float, float, float] | None
    """The 1 %, 50 % and 99 % quantiles of the gaps between frames; None if the tap missed some."""
    burst_frames: float | None
    """Median number of frames that left together of one burst; None without bursts."""
    shaped: bool

    @property
    def busy(self) -> bool:
        """Whether frames always waited for tokens: more reached the shaper than it passed."""
        return self.shaped and self.accepted_pps > 1.01 * self.sent_pps

    @property
    def latency_us(self) -> float | None:
        """How much longer than its tokens a frame took on average; None if the shaper was not busy."""
        return self.frame_us - self.token_us if self.busy else None


def measure(case: SenderUnderTest, seconds: float) -> SenderMeasurement:
    """Send for so many seconds. Raises `RunError` in one line."""
    flow = case.flow
    with (
        own_network([(_NEAR, _FAR)]),
        tempfile.TemporaryDirectory(prefix="loko-") as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        what = "the sender's cable"
        run(["ip", "address", "add", f"{_SOURCE}/24", "dev", _NEAR], what=what)
        neighbour = ["ip", "neigh", "add", str(_SINK), "lladdr", _SINK_MAC, "dev", _NEAR, "nud", "permanent"]
        run(neighbour, what=what)
        if case.shaped:
            shape(_NEAR, {flow.udp_source: TbfParameters.of(flow)}, host=_NEAR, prefix=())
        generator = Generator(flow, _SINK, (), folder, line_rate_bps=case.line_rate_bps)
        stack.callback(generator.cancel)
        generator.wait()
        time.sleep(_SETTLE_S)
        before, before_ns = _counted(case), time.monotonic_ns()
        time.sleep(seconds)
        after, after_ns = _counted(case), time.monotonic_ns()
        stamps = _tapped(folder, seconds=_TAP_S if case.senders.burst_frames == 0 else seconds)
        generator.stop()
    span_s = (after_ns - before_ns) / 1e9
    sent, dropped = (second - first for first, second in zip(before, after, strict=True))
    if not sent:
        raise RunError(f"{case.name}: nothing was sent in {seconds:g} s; measure longer (--seconds)")
    return SenderMeasurement(
        name=case.name,
        shaped=case.shaped,
        token_us=FRAME_BYTES * 8e6 / (flow.bucket.rate_bps if case.shaped else case.offered_bps),
        offered_pps=case.offered_bps / (8 * FRAME_BYTES),
        accepted_pps=(sent + dropped) / span_s,
        sent_pps=sent / span_s,
        frame_us=1e6 * span_s / sent,
        gap_us=_gaps(stamps),
        burst_frames=_burst(stamps, flow) if case.senders.burst_frames else None,
    )


def _counted(case: SenderUnderTest) -> tuple[int, int]:
    """Return how many frames have left, and how many the shaper dropped."""
    if case.shaped:
        shown = run_json(["tc", "-s", "-json", "qdisc", "show", "dev", _NEAR], what="the shaper")[0]
        return int(shown["packets"]), int(shown["drops"])
    shown = run_json(["ip", "-s", "-json", "link", "show", "dev", _NEAR], what="the sender's cable")[0]
    return int(shown["stats64"]["tx"]["packets"]), 0


def _tapped(folder: Path, *, seconds: float) -> NDArray[np.int64] | None:
    """Return when frames left; None if the tap missed some."""
    tap = TcpdumpTap(_NEAR, _NEAR, (), folder)
    try:
        tap.wait()
        time.sleep(seconds)
        frames = tap.stop()
    except RunError:
        return None
    finally:
        tap.cancel()
    return stamps_ns(frames)


def _gaps(stamps: NDArray[np.int64] | None) -> tuple[float, float, float] | None:
    if stamps is None or len(stamps) < 2:
        return None
    low, middle, high = np.percentile(np.diff(stamps) / 1e3, [1, 50, 99])
    return float(low), float(middle), float(high)


def _burst(stamps: NDArray[np.int64] | None, flow: Sender) -> float | None:
    """Return the median length of trains without a gap of several frames, except those at the ends."""
    if stamps is None or len(stamps) < 2:
        return None
    return train_length(stamps, frame_ns=FRAME_BYTES * 8e9 / flow.bucket.rate_bps)


def train_length(stamps: NDArray[np.int64], *, frame_ns: float) -> float | None:
    """Return the median number of frames between pauses of ten frames' time; None without two pauses."""
    pauses = np.flatnonzero(np.diff(stamps) > _PAUSE_FRAMES * frame_ns)
    lengths = [int(second - first) for first, second in itertools.pairwise(pauses)]
    return float(np.median(lengths)) if lengths else None
