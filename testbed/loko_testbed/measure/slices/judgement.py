"""Judges where a slice differs from its configuration, and why, from the samples. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from loko.slicing.bound import SliceBound, delay_bound
from loko.slicing.document import HtbDequeue, HtbPort, HtbQueue, Port, TrtcmDequeue, TrtcmPort, TrtcmQueue
from loko.slicing.goodput import counted_bps
from loko.slicing.lengths import MAX_FRAME_BYTES, Protocol, Scheduler, counted, on_wire, payload
from loko.units import NS_PER_S, NS_PER_US
from loko_testbed.measure.bench.part import Samples
from loko_testbed.measure.slices import measurements as part
from loko_testbed.measure.slices.document import CountedBytes
from loko_testbed.measure.slices.groups import group_lengths
from loko_testbed.measure.slices.measurements import Numbers, burst_of, key, most_of, rate_of
from loko_testbed.simulation.runner import LOST

_RATE_WITHIN: Final = 0.02
"""Relative error up to which a rate is the configured one: measurements end within groups."""
_COUNTS_WITHIN: Final = 3.0
"""Bytes a frame within which what is counted is told apart."""
_LINE_WITHIN: Final = 0.05
"""Relative error up to which one rate, and one way to count, explain what was measured at all lengths."""
_ALL_OFFERED: Final = 0.98
_TCP_SHARE: Final = 0.5
_GROWS: Final = 0.1
"""Growth of the delay, as a share of the time that a flow lasts, above which it gets less than it sends."""
_COMPLAINED_PAYLOAD: Final = 16
_NO_OTHER: Final = "the bench has no second sender here, or it was too slow"


class SliceVerdict(StrEnum):
    """The verdict of a row of the table."""

    AS_CONFIGURED = "as configured"
    DIFFERS = "differs"
    FOLLOWS = "follows"
    """A consequence of the configuration, though not what a user may expect; the reason says why."""
    NOT_PROMISED = "not promised"
    """Measured, but the configuration promises nothing of it; the reason says why."""
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRow:
    """One property of one slice."""

    slice: str
    what: str
    configured: str
    measured: str
    verdict: SliceVerdict
    because: str = ""


def rows(port: Port, counts: CountedBytes, samples: Samples) -> list[SliceRow]:
    """Return the table: a row for each property of each slice of the configured port."""
    return [row for queue in port.queues for row in _Judge(port, queue, counts, samples).rows()]


class _Judge:
    def __init__(
        self, port: Port, queue: HtbQueue | TrtcmQueue, counts: CountedBytes, samples: Samples
    ) -> None:
        self._port, self._queue, self._counts, self._samples = port, queue, counts, samples
        self._really: tuple[float, CountedBytes | None] = (most_of(queue), counts)
        """The rate and what it counts, as measured; None if nothing limits it or the latter is unknown."""

    def _takes(self, frame_bytes: int) -> int:
        """Return the tokens, in bytes, that a frame takes: as measured, or else as configured."""
        return frame_bytes + (self._really[1] or self._counts).more_bytes

    def rows(self) -> list[SliceRow]:
        rows = [*self._rate(), self._burst(), self._group(), self._latency()]
        for other in self._port.queues:
            if other is not self._queue:
                rows += [self._crowded(other.name), self._attacked(other.name)]
        return [*rows, *self._tcp()]

    def _row(
        self, what: str, configured: str, measured: str, verdict: SliceVerdict, because: str = ""
    ) -> SliceRow:
        return SliceRow(
            slice=self._queue.name,
            what=what,
            configured=configured,
            measured=measured,
            verdict=verdict,
            because=because,
        )

    def _of(self, what: str, by: str = "") -> Mapping[int, Numbers]:
        return {length: part.least_disturbed(what, turns) for length, turns in self._turns(what, by).items()}

    def _turns(self, what: str, by: str = "") -> dict[int, list[Numbers]]:
        taken = [self._samples.get(key(self._queue.name, what, by, turn), {}) for turn in range(part.TURNS)]
        lengths = sorted({length for turn in taken for length in turn})
        return {length: [turn[length] for turn in taken if length in turn] for length in lengths}

    # -- rate, what it counts, accuracy by length of frame

    def _expected_pps(self, frame_bytes: int) -> float:
        """Return the frames per second of a slice that is alone and always has something to send."""
        scheduler = Scheduler(self._port.scheduler)
        own = self._counts.more_bytes == counted(scheduler, frame_bytes) - frame_bytes
        link = self._most_pps(frame_bytes)
        if own and most_of(self._queue) == rate_of(self._queue):
            return min(
                counted_bps(self._port, self._queue, frame_bytes) / 8 / counted(scheduler, frame_bytes), link
            )
        return min(most_of(self._queue) / 8 / (frame_bytes + self._counts.more_bytes), link)

    def _rate(self) -> list[SliceRow]:
        taken = {frame: _pps(numbers) for frame, numbers in sorted(self._of(part.RATE).items())}
        most = "ceiling" if most_of(self._queue) > rate_of(self._queue) else "rate"
        configured = f"{_mbps(most_of(self._queue))}, of {self._counts.value}"
        usable = {
            frame: (came, offered)
            for frame, (came, offered) in taken.items()
            if offered >= min(1.05 * self._expected_pps(frame), 0.99 * self._link_pps(frame))
        }
        if len(usable) < 1:
            why = "the sender was too slow to fill it" if taken else "this bench does not send to it here"
            return [self._row(most, configured, "-", SliceVerdict.NOT_MEASURED, why)]
        errors = {frame: came / self._expected_pps(frame) - 1 for frame, (came, _) in usable.items()}
        worst = max(errors, key=lambda frame: abs(errors[frame]))
        accuracy = " ".join(f"{frame}: {100 * error:+.1f} %" for frame, error in errors.items())
        free = {
            frame: came
            for frame, (came, offered) in usable.items()
            if came < _ALL_OFFERED * offered and came < _ALL_OFFERED * self._most_pps(frame)
        }
        if abs(errors[worst]) <= _RATE_WITHIN:
            told = self._counts
            measured = f"{_mbps(most_of(self._queue) * (1 + errors[max(usable)]))}, of {told.value}"
            return [
                self._row(most, configured, measured, SliceVerdict.AS_CONFIGURED),
                self._row("accuracy by length", "+0.0 %", accuracy, SliceVerdict.AS_CONFIGURED),
            ]
        rate_bps, counts, measured, why = self._fitted(free, usable)
        self._really = (rate_bps if free else math.inf, counts)
        same = abs(rate_bps / most_of(self._queue) - 1) <= _RATE_WITHIN
        first = self._row(
            most,
            configured,
            measured,
            SliceVerdict.AS_CONFIGURED if same else SliceVerdict.DIFFERS,
            "" if same else why,
        )
        also = []
        if counts is not None and counts is not self._counts:
            carried = _COMPLAINED_PAYLOAD * rate_bps / (_COMPLAINED_PAYLOAD + 46 + counts.more_bytes)
            also.append(
                self._row(
                    "counts",
                    self._counts.value,
                    counts.value,
                    SliceVerdict.DIFFERS,
                    f"each frame costs its length {counts.more_bytes:+d} bytes, not"
                    f" {self._counts.more_bytes:+d}; so {_COMPLAINED_PAYLOAD} bytes of UDP payload a frame"
                    f" get {_mbps(carried)}",
                )
            )
        because = "what is counted is another" if also else why if same else "the rate is another"
        return [
            first,
            *also,
            self._row("accuracy by length", "+0.0 %", accuracy, SliceVerdict.DIFFERS, because),
        ]

    def _link_pps(self, frame_bytes: int) -> float:
        return self._port.link_rate_bps / 8 / on_wire(frame_bytes)

    def _most_pps(self, frame_bytes: int) -> float:
        """Return the frames per second that both the link and the machine's polls can carry."""
        link, dequeue = self._link_pps(frame_bytes), self._port.dequeue
        return (
            min(link, dequeue.group_frames * 1e6 / dequeue.poll_us)
            if isinstance(dequeue, TrtcmDequeue)
            else link
        )

    def _fitted(
        self, free: Mapping[int, float], usable: Mapping[int, tuple[float, float]]
    ) -> tuple[float, CountedBytes | None, str, str]:
        """Return rate, what it counts (None if unknown), both in words, and why the rate is another one."""
        if not free:
            frame = max(usable)
            rate_bps = usable[frame][0] * 8 * (frame + self._counts.more_bytes)
            return (
                rate_bps,
                None,
                f"more than {_mbps(rate_bps)}",
                "all that was sent passed: nothing limits it",
            )
        if len(free) < 2 or min(free.values()) <= 0:
            frame = max(free)
            rate_bps = free[frame] * 8 * (frame + self._counts.more_bytes)
            return rate_bps, None, _mbps(rate_bps), "the switch has another rate"
        lengths = np.array(sorted(free))
        # A frame of l bytes takes 8 (l + more) / rate seconds: a line over l.
        times_s = np.array([1 / free[int(length)] for length in lengths])
        slope, intercept = np.polyfit(lengths, times_s, 1)
        if slope <= 0 or np.abs((slope * lengths + intercept) / times_s - 1).max() > _LINE_WITHIN:
            frame = max(free)
            rate_bps = free[frame] * 8 * (frame + self._counts.more_bytes)
            why = "no one rate explains all lengths: the switch, or its machine, carries fewer short frames"
            return rate_bps, None, f"{_mbps(rate_bps)} at {frame} bytes", why
        rate_bps, more = 8 / slope, intercept / slope
        nearest = min(CountedBytes, key=lambda counts: abs(counts.more_bytes - more))
        if abs(nearest.more_bytes - more) > _COUNTS_WITHIN:
            text = f"{_mbps(rate_bps)}, of frame {more:+.0f} bytes"
            return rate_bps, None, text, "the switch has another rate, and its own way to count"
        return rate_bps, nearest, f"{_mbps(rate_bps)}, of {nearest.value}", "the switch has another rate"

    # -- bucket and groups

    def _burst(self) -> SliceRow:
        configured = f"{burst_of(self._queue)} bytes"
        taken = self._turns(part.BURST)
        if not taken:
            return self._row("burst", configured, "-", SliceVerdict.NOT_MEASURED, "not sent")
        ((frame, turns),) = taken.items()
        if all((instants_ns == LOST).all() for instants_ns in turns):
            because = f"no frame of {frame} bytes passed at all"
            return self._row("burst", configured, "0 bytes", SliceVerdict.DIFFERS, because)
        takes = self._takes(frame)
        rate = self._really[0] / 8 / NS_PER_S
        if rate * on_wire(frame) * 8 * NS_PER_S / self._port.link_rate_bps > 0.9 * takes:
            because = "its rate is that of the link, or nothing limits it"
            return self._row("burst", configured, "-", SliceVerdict.NOT_MEASURED, because)
        # A host that delays some of the frames makes a bucket look smaller, never larger.
        least = max(self._least_bucket(instants_ns, takes, rate) for instants_ns in turns)
        all_passed = any((instants_ns != LOST).all() for instants_ns in turns)
        whole = burst_of(self._queue)
        # Of two buckets, each may have less left than a packet.
        unused = takes if isinstance(self._queue, TrtcmQueue) and self._queue.ebs_bytes else 0
        late = rate * self._late_ns()
        measured = f"{max(least, 0):.0f} to {max(least, 0) + takes:.0f} bytes"
        if (
            least - takes - late
            <= whole
            <= least + 2 * takes + unused + late + rate * _slack_ns(self._port, frame)
        ):
            return self._row("burst", configured, measured, SliceVerdict.AS_CONFIGURED)
        if all_passed and isinstance(self._queue, TrtcmQueue) and least > whole:
            measured = f"more than {least:.0f} bytes"
        size = "smaller" if least < whole else "larger"
        hint = f"the bucket is {size}"
        if least < whole and least < 2 * self._takes(MAX_FRAME_BYTES):
            hint += "; it holds one full packet at most, so that packets that come together do not pass"
        return self._row("burst", configured, measured, SliceVerdict.DIFFERS, hint)

    def _least_bucket(self, instants_ns: Numbers, takes: int, rate: float) -> float:
        """Return the least bucket, in bytes, that lets these frames pass when they did.

        In any interval no more passes than the bucket and what its rate brings meanwhile. A class may owe the
        tokens of one frame; a policer must hold those of each.
        """
        came = np.sort(instants_ns[instants_ns != LOST])
        if not len(came):
            return 0.0
        owed = 1 if isinstance(self._queue, HtbQueue) else 0
        beyond_rate = np.arange(len(came)) * takes - rate * (came - came[0])
        most = float((beyond_rate - np.minimum.accumulate(beyond_rate)).max())
        return most + (1 - owed) * takes

    def _late_ns(self) -> float:
        dequeue = self._port.dequeue
        return dequeue.timer_us * NS_PER_US if isinstance(dequeue, HtbDequeue) else 0.0

    def _group(self) -> SliceRow:
        port, queue = self._port, self._queue
        configured = self._expected_groups()
        taken = self._of(part.GROUP)
        frames = next(iter(taken.values()), np.array([], dtype=np.int64))
        came = np.sort(frames[frames != LOST])
        slot_ns = on_wire(MAX_FRAME_BYTES) * 8 * NS_PER_S / port.link_rate_bps
        if isinstance(queue, HtbQueue):
            earns_ns = self._takes(MAX_FRAME_BYTES) * 8 * NS_PER_S / queue.ceiling_bps
            gap_ns = max(2 * slot_ns, earns_ns / 2)
            if earns_ns < 2 * slot_ns:
                return self._row(
                    "group",
                    f"{configured[0]}",
                    "-",
                    SliceVerdict.NOT_MEASURED,
                    "the slice is too close to the link's rate to tell",
                )
        else:
            gap_ns = 2 * slot_ns
        lengths = group_lengths(came, gap_ns) if len(came) else []
        # The first is the bucket's, the last may be what is left.
        later = lengths[1:-1] if isinstance(queue, HtbQueue) else lengths[:-1]
        if not later:
            why = "the bucket lets no second group pass" if len(came) else "nothing passed"
            return self._row("group", f"{configured[0]} frames", "-", SliceVerdict.NOT_MEASURED, why)
        middle = float(np.median(later))
        low, high = configured
        said = f"{low}" if low == high else f"{low} to {high}"
        verdict = SliceVerdict.AS_CONFIGURED if low <= middle <= high else SliceVerdict.DIFFERS
        because = (
            ""
            if verdict is SliceVerdict.AS_CONFIGURED
            else "this machine dequeues otherwise: put what is measured into the file's dequeue"
        )
        return self._row("group", f"{said} frames", f"{middle:g} frames", verdict, because)

    def _expected_groups(self) -> tuple[int, int]:
        """Return the least and largest group after the first, in frames: a late timer makes groups longer."""
        group = self._port.dequeue.group_frames
        if not isinstance(self._port, HtbPort):
            return group, group
        more = int(most_of(self._queue) / 8 / NS_PER_S * self._late_ns() / self._takes(MAX_FRAME_BYTES))
        return group, group + more + (1 if self._late_ns() else 0)

    # -- latency, borrowing, isolation

    def _latency(self) -> SliceRow:
        frame = part.flow_of_slice(self._queue).frame_bytes
        numbers = next(iter(self._of(part.LATENCY).values()), None)
        return self._within_bound("latency", numbers, f"its flow of {frame}-byte frames, alone")

    def _within_bound(self, what: str, numbers: Numbers | None, sent: str) -> SliceRow:
        bound = delay_bound(self._port, self._queue)
        lossy = isinstance(bound, SliceBound) and bound.lossy_because is not None
        configured = "no bound"
        if isinstance(bound, SliceBound):
            configured = f"at most {bound.delay_us:.0f} us" + (", or lost" if lossy else "")
        if numbers is None:
            return self._row(what, configured, "-", SliceVerdict.NOT_MEASURED, "not sent")
        came = numbers[numbers != LOST] / NS_PER_US
        lost = len(numbers) - len(came)
        if not len(came):
            return self._row(what, configured, "all lost", SliceVerdict.DIFFERS, f"nothing of {sent} arrived")
        measured = f"{np.median(came):.0f} us p50, {came.max():.0f} us max, {lost} lost"
        if not isinstance(bound, SliceBound):
            why = self._starved(numbers, sent) if self._promised() else None
            verdict = SliceVerdict.NOT_PROMISED if why is None else SliceVerdict.DIFFERS
            return self._row(what, configured, measured, verdict, bound.because if why is None else why)
        if lost and not lossy:
            why = f"{100 * lost / len(numbers):.0f} % of {sent} were lost, although it conforms"
        else:
            why = f"{sent}, waits longer than it may" if came.max() > bound.delay_us else None
        verdict = SliceVerdict.AS_CONFIGURED if why is None else SliceVerdict.DIFFERS
        return self._row(what, configured, measured, verdict, why or "")

    def _starved(self, numbers: Numbers, sent: str) -> str | None:
        """Return how the flow got less than it sent, by losses or growing delays; None if it did not."""
        lost = int((numbers == LOST).sum())
        if lost:
            share = f"{100 * lost / len(numbers):.0f} %"
            return f"{share} of {sent} were lost, although it sends less than is assured"
        flow = part.flow_of_slice(self._queue)
        lasts_ns = len(numbers) * flow.frame_bytes * 8 * NS_PER_S / flow.rate_bps
        patience_ns = flow.burst_bytes * 8 * NS_PER_S / rate_of(self._queue) + _GROWS * lasts_ns
        if numbers.max() - numbers[0] > patience_ns:
            return f"{sent}, waits longer and longer, although it sends less than is assured"
        return None

    def _promised(self) -> bool:
        """Return whether a conforming flow must not lose frames, even if its delay has no bound."""
        flow = part.flow_of_slice(self._queue)
        if not isinstance(self._queue, HtbQueue):
            return False
        return (
            flow.rate_bps <= rate_of(self._queue)
            and flow.burst_bytes / flow.frame_bytes < self._queue.limit_frames
        )

    def _crowded(self, other: str) -> SliceRow:
        what, configured = f"rate beside {other}", f"at least {_mbps(rate_of(self._queue))}"
        numbers = next(iter(self._of(part.CROWDED, other).values()), None)
        if numbers is None:
            return self._row(what, configured, "-", SliceVerdict.NOT_MEASURED, _NO_OTHER)
        came, _ = _pps(numbers)
        bps = came * 8 * (MAX_FRAME_BYTES + self._counts.more_bytes)
        most_bps = max(most_of(self._queue), rate_of(self._queue))
        if bps < rate_of(self._queue) * (1 - _RATE_WITHIN):
            why = f"{other} takes what this slice was assured"
            if isinstance(self._port, TrtcmPort):
                return self._row(
                    what,
                    configured,
                    _mbps(bps),
                    SliceVerdict.FOLLOWS,
                    "all queues wait for the same polls and link",
                )
            return self._row(what, configured, _mbps(bps), SliceVerdict.DIFFERS, why)
        if bps > most_bps * (1 + _RATE_WITHIN):
            return self._row(what, configured, _mbps(bps), SliceVerdict.DIFFERS, "above its ceiling")
        return self._row(what, configured, _mbps(bps), SliceVerdict.AS_CONFIGURED)

    def _attacked(self, other: str) -> SliceRow:
        what, taken = f"under attack by {other}", self._of(part.ATTACKED, other)
        if not taken:
            return self._row(what, "-", "-", SliceVerdict.NOT_MEASURED, _NO_OTHER)
        by_length = [
            self._within_bound(what, numbers, f"its flow beside {length}-byte frames")
            for length, numbers in sorted(taken.items())
        ]
        return next((row for row in by_length if row.verdict is SliceVerdict.DIFFERS), by_length[-1])

    # -- TCP

    def _tcp(self) -> list[SliceRow]:
        numbers = next(iter(self._of(part.TCP).values()), None)
        if numbers is None:
            return []
        delivered, duration_ns = numbers.tolist()
        bps = delivered * 8 * NS_PER_S / duration_ns
        frame = MAX_FRAME_BYTES
        most = most_of(self._queue) * payload(Protocol.TCP, frame) / (frame + self._counts.more_bytes)
        configured, measured = f"at most {_mbps(most)}", _mbps(bps)
        if bps > most * (1 + _RATE_WITHIN):
            return [self._row("TCP payload", configured, measured, SliceVerdict.DIFFERS, "above its rate")]
        if bps >= _TCP_SHARE * most:
            return [self._row("TCP payload", configured, measured, SliceVerdict.AS_CONFIGURED)]
        holds = burst_of(self._queue) // self._takes(MAX_FRAME_BYTES)
        because = (
            f"full packets in its bucket: {holds}; of a window that comes together the rest is dropped, and"
            " TCP waits for its timer"
            if isinstance(self._queue, TrtcmQueue)
            else "its rate, its bucket, what others leave or what the machine carries is too little for TCP"
        )
        return [self._row("TCP payload", configured, measured, SliceVerdict.FOLLOWS, because)]


def _pps(numbers: Numbers) -> tuple[float, float]:
    """Return the received and the offered frames per second."""
    came, came_ns, offered, offered_ns = numbers.tolist()
    return (
        came * NS_PER_S / came_ns if came_ns else 0.0,
        offered * NS_PER_S / offered_ns if offered_ns else 0.0,
    )


def _slack_ns(port: Port, frame_bytes: int) -> float:
    """Return how long after its tokens are there a frame may leave: two frames' wire time, and a poll."""
    poll_us = port.dequeue.poll_us if isinstance(port, TrtcmPort) else 0.0
    return 2 * on_wire(frame_bytes) * 8 * NS_PER_S / port.link_rate_bps + poll_us * NS_PER_US


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:.3g} Mbit/s" if bps < 1e7 else f"{bps / 1e6:.4g} Mbit/s"
