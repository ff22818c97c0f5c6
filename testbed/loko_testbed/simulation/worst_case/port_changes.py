"""Sets that change on a long line of switch chips: a released flow's frames meet flows that came after it.

A flow sends its burst along the whole line and is released. Flows that are admitted then cross its path at
each chip, one after another, and hold its frames up. A newcomer whose burst does not fit beside the released
one asks until it is accepted, and sends when these frames come to the last port, or at once if they are past.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from loko.admission import Admission, Admitted, Refusal
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.device import BESIDE_BYTES
from loko.switch_model.device import load_device
from loko.switch_model.flow import Flow
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, lab_of
from loko.units import NS_PER_MS
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.changes import ChangePlan, FlowLifetime, earliest_conforming

ENTRIES: Final = 60
"""Planned for each table, which holds an entry for every flow of a history."""
_LONGEST_WAIT_NS: Final = 400 * NS_PER_MS
_TAIL_NS: Final = 5 * NS_PER_MS
_LEAVE: Final = 0.7
"""Share of the flows that are released after a round."""
_SOURCE_PORT, _DESTINATION_PORT, _NEWCOMER_PORT, _SINK_PORT = 3, 4, 5, 6
_FIRST_FAN_PORT: Final = 10


@dataclass(frozen=True, kw_only=True)
class LongLine:
    """Changes on a line of chips. Sizes of bursts are parts of what a port serves within its target."""

    chips: int
    fan: int
    """Hosts at each chip that send across the path."""
    profile: str
    frame_bytes: int
    target_ns: float | None
    """Of each port; None: as its room in the buffer allows."""
    leaver: float
    """Burst of the flow that is released."""
    across: float
    """Most that comes to a port from its fan together: less, if that does not fit."""
    newcomer: float
    """Most that the newcomer sends at once."""
    rate_bps: float = 1e3
    """Of each flow."""
    staying_bps: float = 0.0
    """Rate of a flow along the line that stays and sends all it may; 0 if there is none."""
    rounds: int = 1
    after_ns: int = 0
    """From the leaver's burst to its release."""
    off_ns: int = 0
    """By how much bursts may miss what they are aimed at."""
    classes: int = 1
    """Traffic classes that its flows are in, at random."""
    idle_ns: int = 4_000
    """By which frames are expected to be delayed at a chip, beside the frames that they wait for."""

    @staticmethod
    def drawn(rng: Random, profiles: Sequence[str], sizes: Sequence[int]) -> LongLine:
        """Draw a line of up to twelve chips and what happens on it.

        Most differ in few values from lines on which the newcomer is late under a rule that forgets released
        flows too early. On lines whose values are all random, it hardly ever is.
        """
        profile = rng.choice(profiles)
        device = load_device(profile)
        assert isinstance(device, GenericSwitch)
        # With many ports in use, a shared buffer leaves a queue no room.
        most_fan = 4 if device.buffer is None else 2
        line = LongLine(
            chips=rng.randint(6, 12),
            fan=most_fan,
            profile=profile,
            frame_bytes=rng.choice(sizes),
            target_ns=rng.choice((None, 400_000.0, 800_000.0)),
            leaver=0.9,
            across=rng.choice((0.9, 1.0)),
            newcomer=0.95,
            idle_ns=rng.choice((4_000, 10_000, 16_000)),
        )
        draws: dict[str, Callable[[], Any]] = {
            "chips": lambda: rng.randint(2, 12),
            "fan": lambda: rng.randint(2, most_fan),
            "target_ns": lambda: rng.uniform(150_000.0, 1_000_000.0),
            "leaver": lambda: rng.uniform(0.05, 0.95),
            "across": lambda: rng.uniform(0.2, 1.0),
            "newcomer": lambda: rng.uniform(0.1, 0.95),
            "rate_bps": lambda: rng.choice((1e6, 1e7)),
            "staying_bps": lambda: rng.choice((1e7, 2e8)),
            "rounds": lambda: rng.choice((2, 3)),
            "after_ns": lambda: rng.choice((100_000, NS_PER_MS)),
            "off_ns": lambda: rng.choice((20_000, 200_000)),
        }
        drawn = rng.sample(list(draws), rng.choice((0, 1, 2, len(draws))))
        return replace(line, **{name: draws[name]() for name in drawn})

    def lab(self) -> Lab:
        """Return the line: a host at either end, and at each chip its fan and a host that these send to."""
        hosts: dict[str, dict[str, str]] = {}
        links = [{"a": f"s{chip}:2", "b": f"s{chip + 1}:1"} for chip in range(self.chips - 1)]

        def add(name: str, chip: int, port: int) -> None:
            place = len(hosts) + 1
            hosts[name] = {"mac": f"02:00:00:00:00:{place:02x}", "ip": f"10.0.0.{place}/24"}
            links.append({"a": name, "b": f"s{chip}:{port}"})

        last = self.chips - 1
        add("source", 0, _SOURCE_PORT)
        for chip in range(self.chips):
            for place in range(self.fan):
                add(f"fan{chip}x{place}", chip, _FIRST_FAN_PORT + place)
        for chip in range(1, self.chips):
            add(f"sink{chip}", chip, _SINK_PORT)
        add("newcomer", last, _NEWCOMER_PORT)
        add("destination", last, _DESTINATION_PORT)
        switches = {
            f"s{chip}": {"datapath_id": f"00:00:02:00:00:00:01:{chip:02x}", "profile": self.profile}
            for chip in range(self.chips)
        }
        title = f"{self.chips} chips in a line"
        return lab_of({"name": "line", "title": title, "switches": switches, "hosts": hosts, "links": links})

    def admission(self, lab: Lab) -> PortAdmission:
        """Return an empty admission control for the line."""
        scenario = loko_scenario(entries=ENTRIES, packet_sizes_bytes=(self.frame_bytes,))
        return PortAdmission(lab, scenario, target_ns=self.target_ns)


@dataclass(frozen=True, kw_only=True)
class PlannedChange:
    """Flows and frames of a line, to be sent."""

    history: ChangePlan
    case: AdmittedSet
    until_ns: int
    newcomers: tuple[FlowLifetime, ...]


def plan_changes(line: LongLine, admission: Admission, lab: Lab, rng: Random) -> PlannedChange:
    """Plan what happens on a line. It ends early when the tables cannot hold more flows."""
    plan = _Plan(line, admission, rng)
    newcomers = [life for _ in range(line.rounds) if (life := plan.round()) is not None]
    until_ns = plan.finish()
    case = plan.history.case(AdmittedSet(lab=lab, scheme="ports", admitted=(), entries=ENTRIES))
    return PlannedChange(history=plan.history, case=case, until_ns=until_ns, newcomers=tuple(newcomers))


class _Plan:
    """Plans rounds, one after another."""

    def __init__(self, line: LongLine, admission: Admission, rng: Random) -> None:
        self.history = ChangePlan(admission)
        self._line, self._admission, self._rng = line, admission, rng
        self._flows = 0
        # All these chips have ports of 1 Gbit/s.
        self._wire_ns = (line.frame_bytes + BESIDE_BYTES) * 8
        self._begin_ns = self.history.now_ns
        alone = admission.check(self._flow("source", "destination", 1))
        assert isinstance(alone, Admitted), "a lone frame fits"
        self._target_frames = alone.delays_ns[-1] / self._wire_ns
        self._staying: FlowLifetime | None = None
        if line.staying_bps:
            flow = self._flow("source", "destination", 1)._replace(rate_bps=line.staying_bps)
            self._staying = self._accepted(flow)

    def round(self) -> FlowLifetime | None:
        """Let a flow leave and others cross its path. Return the newcomer, if it was accepted."""
        line, history = self._line, self.history
        if history.entries + 2 * line.fan + 3 > ENTRIES:
            return None
        leaver = self._largest("source", "destination", self._frames(line.leaver))
        if leaver is None:
            return None
        self._send(leaver, history.now_ns)
        head_ns = history.now_ns + self._wire_ns
        history.wait(line.after_ns)
        history.release(leaver)
        for chip in range(line.chips - 1):
            head_ns += line.idle_ns + self._crossed(chip, f"sink{chip + 1}", line.fan, head_ns)
        beside = self._fan(line.chips - 1, "destination", line.fan - 1)
        flow = self._flow("newcomer", "destination", self._frames(line.newcomer))
        newcomer = history.request_until_admitted(flow, _LONGEST_WAIT_NS)
        at_ns = self._aimed(head_ns)
        for life in (*beside, *([] if newcomer is None else [newcomer])):
            self._send(life, at_ns)
        history.wait(max(0, at_ns - history.now_ns) + round(2 * self._target_frames * self._wire_ns))
        for life in history.lives:
            if life is not self._staying and life.until_ns > history.now_ns and self._rng.random() < _LEAVE:
                history.release(life)
        return newcomer

    def finish(self) -> int:
        """Let the staying flow send until everything has arrived, and return when that is."""
        until_ns = self.history.now_ns + _TAIL_NS
        if self._staying is not None:
            flow = self._staying.admitted.flow
            frames = int((until_ns - self._begin_ns) * flow.rate_bps / 8e9 / flow.frame_bytes)
            self._staying.offers_ns = earliest_conforming(flow, first_ns=self._begin_ns, frames=frames)
        return until_ns

    def _crossed(self, chip: int, sink: str, count: int, head_ns: int) -> int:
        """Let a chip's fan send just ahead of the leaver. Return for how long its frames then wait."""
        lives = self._fan(chip, sink, count)
        frames = [int(life.admitted.flow.burst_bytes // self._line.frame_bytes) for life in lives]
        for life, burst in zip(lives, frames, strict=True):
            self._send(life, self._aimed(head_ns - (burst + 1) * self._wire_ns))
        # The port sends while they come, each by its own cable.
        return (sum(frames) - max(frames, default=0)) * self._wire_ns

    def _fan(self, chip: int, destination: str, count: int) -> list[FlowLifetime]:
        """Admit a flow from each of these hosts: together as much as comes across, as far as it fits."""
        most = self._frames(self._line.across / count)
        lives = [self._largest(f"fan{chip}x{place}", destination, most) for place in range(count)]
        return [life for life in lives if life is not None]

    def _largest(self, source: str, destination: str, most: int) -> FlowLifetime | None:
        """Admit a flow with the largest burst that fits, of at most this many frames."""
        fits, too_large = 0, most + 1
        while too_large - fits > 1:
            middle = (fits + too_large) // 2
            if isinstance(self._admission.check(self._flow(source, destination, middle)), Refusal):
                too_large = middle
            else:
                fits = middle
        return self._accepted(self._flow(source, destination, fits)) if fits else None

    def _accepted(self, flow: Flow) -> FlowLifetime | None:
        answer = self.history.request(flow)
        return None if isinstance(answer, Refusal) else answer

    def _send(self, life: FlowLifetime, first_ns: int) -> None:
        flow = life.admitted.flow
        self.history.send(life, first_ns=first_ns, frames=int(flow.burst_bytes // flow.frame_bytes))

    def _aimed(self, at_ns: int) -> int:
        """Return an instant about then, but not in the past."""
        off_ns = self._line.off_ns
        return max(self.history.now_ns, at_ns + self._rng.randint(-off_ns, off_ns))

    def _frames(self, part: float) -> int:
        """Return the frames that a port serves in this part of its target, at least one."""
        return max(1, int(part * self._target_frames))

    def _flow(self, source: str, destination: str, frames: int) -> Flow:
        self._flows += 1
        size = self._line.frame_bytes
        ports, burst_bytes = (5000 + self._flows, 6000), float(frames * size)
        # The first is the lone frame by which the others are sized.
        is_drawn = self._flows > 1 and self._line.classes > 1
        traffic_class = self._rng.randint(1, self._line.classes) if is_drawn else 1
        name, rate_bps = f"f{self._flows}", self._line.rate_bps
        return Flow(name, source, destination, *ports, rate_bps, burst_bytes, size, traffic_class)
