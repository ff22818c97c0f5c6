"""A sending host's token bucket: tc's tbf, with its traps (section 6.1; `docs/live-lab.md`).

The evaluation counts a frame with its FCS (l bytes); Linux shapes what it hands to the driver (l - 4). Rate,
bucket and queue are scaled by (l - 4)/l, so that as many frames pass as the token bucket allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from loko.units import BITS_PER_BYTE, US_PER_S
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.instruments.traffic_control import Htb, class_id, direct_udp, replace_discipline
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import RandomBursts, Sender

FCS_BYTES = 4

_BURST_MARGIN_BYTES = 2
"""tc rounds a bucket down by up to 1 byte, and one smaller than a frame drops every frame in silence."""

_GREEDY_FRAMES = 20
"""Room before the bucket of a sender that offers more than passes, so that a frame always waits."""

_NEVER_WAITS = "10gbit"
_QUANTUM_BYTES = 1514


@dataclass(frozen=True, slots=True, kw_only=True)
class TbfParameters:
    """Parameters of tbf, in bytes as Linux counts them."""

    rate_bytes_per_s: int
    burst_bytes: int
    limit_bytes: int

    @classmethod
    def of(cls, flow: Sender) -> Self:
        """Return the bucket that passes what the flow's shaper allows. Raises `RunError` if tbf cannot."""
        seen = flow.frame_bytes - FCS_BYTES
        shaper, queue_bytes = flow.bucket, _GREEDY_FRAMES * flow.frame_bytes
        if isinstance(flow.sends, RandomBursts):
            queue_bytes = int(flow.sends.queue_bytes)
        if shaper.burst_bytes < flow.frame_bytes:
            raise RunError(
                f"{flow.where}: a bucket of {shaper.burst_bytes:g} bytes never lets "
                f"a frame of {flow.frame_bytes} bytes pass: raise the burst or shrink the frame"
            )
        bucket = cls(
            rate_bytes_per_s=int(shaper.rate_bps) * seen // (flow.frame_bytes * BITS_PER_BYTE),
            burst_bytes=int(shaper.burst_bytes) * seen // flow.frame_bytes + _BURST_MARGIN_BYTES,
            limit_bytes=max(queue_bytes * seen // flow.frame_bytes, seen),
        )
        if bucket.rate_bytes_per_s < 1:
            raise RunError(f"{flow.where}: a rate of {shaper.rate_bps:g} bit/s is too low for tbf")
        return bucket

    def arguments(self) -> list[str]:
        """Return the bucket as arguments of tc."""
        rate = ["rate", f"{self.rate_bytes_per_s * BITS_PER_BYTE}bit"]
        return ["tbf", *rate, "burst", str(self.burst_bytes), "limit", str(self.limit_bytes)]

    def differences(self, shown: Sequence[Mapping[str, Any]]) -> str | None:
        """Return how ``tc -json qdisc show`` differs, beyond tc's own rounding; None if it does not."""
        if [entry.get("kind") for entry in shown] != ["tbf"]:
            return (
                f"the queueing discipline is {' '.join(str(entry.get('kind')) for entry in shown) or 'none'}"
            )
        options = shown[0].get("options", {})
        rate, burst = options.get("rate"), options.get("burst")
        if rate != self.rate_bytes_per_s:
            return f"the rate is {rate} bytes/s instead of {self.rate_bytes_per_s}"
        # tc reckons a bucket in whole microseconds at its rate, and rounds once more when it shows it.
        rounding = 1 + self.rate_bytes_per_s // US_PER_S
        if burst is None or not self.burst_bytes - rounding <= burst <= self.burst_bytes:
            return f"the burst is {burst} bytes instead of {self.burst_bytes}"
        return None


def shape(interface: str, buckets: Mapping[int, TbfParameters], *, host: str, prefix: Sequence[str]) -> None:
    """Put token buckets on a host's interface, by the UDP source port of what each shapes.

    Reads back whether the kernel has set them up. Raises `RunError`.
    """
    what = f"{host}: token bucket on {interface}"
    if len(buckets) == 1:
        (bucket,) = buckets.values()
        root = ["dev", interface, "root", *bucket.arguments()]
        replace_discipline("tbf", root, what=what, prefix=prefix)
    else:
        # An interface has one root: classes that never wait lead to the buckets; all else takes the first.
        never_wait = ["rate", _NEVER_WAITS, "quantum", str(_QUANTUM_BYTES)]
        htb = Htb(interface, default=1, what=what, prefix=prefix)
        for number, (port, bucket) in enumerate(buckets.items(), start=1):
            htb.add(number, never_wait, leaf=bucket.arguments())
            direct_udp(interface, "sport", port, number, what=what, prefix=prefix)
    shown = run_json(["tc", "-json", "qdisc", "show", "dev", interface], what=what, prefix=prefix)
    at_root = len(buckets) == 1
    for number, bucket in enumerate(buckets.values(), start=1):
        mine = shown if at_root else [qdisc for qdisc in shown if qdisc.get("parent") == class_id(number)]
        if difference := bucket.differences(mine):
            raise RunError(
                f"{what}: {difference}: this kernel or tc did not obey '{' '.join(bucket.arguments())}'"
            )


def unshape(interface: str, *, host: str, prefix: Sequence[str]) -> None:
    """Remove the token buckets together with all frames that still wait in them. Raises `RunError`."""
    run(["tc", "qdisc", "delete", "dev", interface, "root"], what=f"{host}: token bucket", prefix=prefix)
