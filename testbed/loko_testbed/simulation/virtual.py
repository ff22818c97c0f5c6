"""Run a lab in virtual time: in the simulator, with the emulated firmware on every Zodiac FX."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
import switch_emulator

from loko.control import messages13
from loko.control.entries import FlowEntry, switch_entries
from loko.control.framing import whole_messages
from loko.control.messages import session_segments
from loko.document import InputError
from loko.switch_model.device import Profile, load_device, profile_text
from loko.switch_model.scenario import OpenFlow, Unknown
from loko.topology.frame import HEADERS_BYTES, frame_of, segment_of
from loko.topology.lab import Backend, Lab, Link
from loko.topology.network import Routed
from loko.topology.ring import Setting
from loko_testbed.simulation.planned_control import Planned, echoes
from loko_testbed.simulation.runner import RunError, RunRecords, refuse_others
from loko_testbed.simulation.senders import Shaper, bursts_ns, slot_ns
from loko_testbed.simulation.traffic import (
    Bucket,
    Greedy,
    Instants,
    RandomBursts,
    Releases,
    Sender,
    Sends,
    Tcp,
    TimeTriggered,
)

_DRAIN_NS: Final = 100_000_000
"""Longer than full queues need to empty after the last packet was sent."""

SEQUENCE_OFFSET: Final = HEADERS_BYTES + 8
"""Where mgen writes its sequence number; so virtual and live frames look alike."""

_CONTROLLER: Final = "controller"
"""Name of the controller's node; no switch or host of a lab is called so."""


class BoardEvent(NamedTuple):
    """Something that a board reported: a fault, or a message that it lost or misread."""

    at_ns: int
    """Since the switches were powered on."""
    board: str
    text: str


class CapturedRun(NamedTuple):
    """Everything that passed the cables of a run, and the control sessions that need none."""

    frames: list[tuple[int, int, tuple[str, int], tuple[str, int], bytes]]
    """As of `switch_emulator.Network.captured_frames`."""
    segments: list[tuple[str, list[tuple[int, bool, bytes]]]]
    """As of `switch_emulator.Network.captured_segments`."""
    events: list[BoardEvent]
    """The boards' reports, in order of time, once the run is over."""


class VirtualRunner:
    """Sends traffic through a simulated lab. Several threads may use one runner at the same time."""

    carries: ClassVar[frozenset[type[Sends]]] = frozenset({RandomBursts, Greedy, Releases, TimeTriggered})

    def __init__(
        self,
        lab: Lab,
        routed: Sequence[Routed],
        *,
        entries: int | Unknown,
        profile_of: Mapping[str, str] = MappingProxyType({}),
        capacity_factor: float | None = None,
        openflow: OpenFlow = OpenFlow.V1_0,
        other_entries: Mapping[str, Sequence[FlowEntry]] = MappingProxyType({}),
    ) -> None:
        """Give the switches the controller's tables for `routed`, the admitted flows on their paths.

        `other_entries` follow in the tables, by switch, for traffic that nobody has admitted.
        `profile_of` overrides the profiles of switches, by name. `capacity_factor` overrides the factor in
        the profiles: true capacity over equation 6 (section 3.4.2). Sessions use the version `openflow`.
        Raises `InputError` if the tables do not hold the flows, or if a switch has another backend.
        """
        for switch in lab.switches.values():
            if switch.backend is not Backend.FIRMWARE:
                raise InputError(
                    f"{lab.path}: {switch.name}: backend {switch.backend} exists in live runs only: "
                    "use --mode live, or the backend firmware"
                )
        self._lab = lab
        self._tables = {
            name: (*table, *other_entries.get(name, ()))
            for name, table in switch_entries(lab, routed, entries=entries).items()
        }
        self._capacity_factor = capacity_factor
        self._openflow = openflow
        self._profile_of = {
            name: profile_of.get(name, switch.emulated_as) for name, switch in lab.switches.items()
        }
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        """Write profiles with the chosen capacity factor. Raises `InputError` if they do not allow it."""
        if self._capacity_factor is not None:
            changed = {
                name: profile_with_capacity(name, self._capacity_factor)
                for name in set(self._profile_of.values())
            }
            self._folder = tempfile.TemporaryDirectory(prefix="loko-profiles-")
            for switch, name in self._profile_of.items():
                path = Path(self._folder.name) / f"{Path(name).stem}.toml"
                path.write_text(changed[name], encoding="utf-8")
                self._profile_of[switch] = str(path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def run(
        self,
        traffic: Sequence[Sender],
        *,
        seconds: float,
        seed: int,
        echoes_per_s: float = 0,
        capture: Callable[[PoweredLab], None] | None = None,
    ) -> RunRecords:
        """Simulate one run. Raises `RunError` if a board refuses its table or complains about anything.

        After the run, `capture` may take what was captured of it.
        """
        planned = {}
        for number, name in enumerate(self._tables):
            # A random phase for each switch: else all of them would get their requests at the same instant.
            phase = np.random.default_rng((seed, number)).random()
            planned[name] = echoes(echoes_per_s, seconds, phase)
        powered = self.powered(seed=seed, is_captured=capture is not None)
        records = powered.run(traffic, duration_ns=round(seconds * 1e9), planned=planned)
        if capture is not None:
            capture(powered)
        if records.events:
            raise RunError(f"{records.events[0]} (seed {seed})")
        return records

    def powered(
        self,
        *,
        seed: int,
        settings: Mapping[str, Mapping[str, Setting]] = MappingProxyType({}),
        is_captured: bool = False,
    ) -> PoweredLab:
        """Return the lab ready for one run, for callers that need its start time or the boards' complaints.

        `settings` adds to the switches' configuration. With `is_captured`, `PoweredLab.captured` has what
        passed the cables. Raises `RunError` if a board refuses its table.
        """
        try:
            network = lab_network(
                self._lab,
                self._tables,
                seed=seed,
                profile_of=self._profile_of,
                settings=settings,
                openflow=self._openflow,
                is_captured=is_captured,
            )
        except ValueError as error:
            raise RunError(f"lab '{self._lab.name}': {error}") from None
        return PoweredLab(self._lab, network, seed)


class PoweredLab:
    """A simulated lab whose switches have their tables. It can be used for one run."""

    def __init__(self, lab: Lab, network: switch_emulator.Network, seed: int) -> None:
        """Take a network of the lab without senders. The seed is for senders that behave randomly."""
        self._lab = lab
        self._network = network
        self._seed = seed
        self._events: list[BoardEvent] = []

    @property
    def now_ns(self) -> int:
        """Time since the switches were powered on: the start of the run by their clocks."""
        return self._network.now_ns()

    def captured(self) -> CapturedRun:
        """Take what was captured so far; nothing unless the network was made for it."""
        return CapturedRun(self._network.captured_frames(), self._network.captured_segments(), self._events)

    def run(
        self,
        traffic: Sequence[Sender],
        *,
        duration_ns: int,
        planned: Planned = MappingProxyType({}),
        pulled: Sequence[tuple[int, Link]] = (),
        drain_ns: int = _DRAIN_NS,
    ) -> RunRecords:
        """Send the traffic for `duration_ns`, then wait `drain_ns` for packets under way to arrive.

        The controller sends the planned messages to each switch. Cables are `pulled` at these times, in ns
        from the start and in order. Complaints of boards are recorded. Raises `RunError` if the traffic or
        the plan cannot be simulated.
        """
        refuse_others(traffic, VirtualRunner.carries, "virtual")
        network = self._network
        begin_ns = network.now_ns()
        try:
            for flow in traffic:
                add_sender(network, self._lab, flow, seed=self._seed, duration_ns=duration_ns)
            for name, segments in planned.items():
                network.plan_control(name, segments)
            for at_ns, link in pulled:
                network.unplug(link.a.node, link.a.port, at_ns=at_ns)
            result = network.run(duration_ns=duration_ns, drain_ns=drain_ns)
        except ValueError as error:
            raise RunError(f"lab '{self._lab.name}': {error}") from None
        self._events = sorted(
            BoardEvent(begin_ns + event.at_ns, event.board, event.text)
            for event in (*result.events, *result.deviations)
        )
        return RunRecords(
            flow=result.flow,
            sequence=result.sequence,
            sent_ns=result.sent_ns,
            received_ns=result.received_ns,
            size=result.size,
            boards=result.boards,
            flows=result.flows,
            events=tuple(
                f"{event.board}, {event.at_ns} ns after the start: {event.text}" for event in result.events
            ),
        )


def add_sender(
    network: switch_emulator.Network,
    lab: Lab,
    flow: Sender,
    *,
    seed: int = 0,
    duration_ns: int = 0,
    line_rate_bps: float | None = None,
) -> None:
    """Add a flow's sender to a simulated network of the lab.

    `duration_ns` is the length of the run; `seed` is for departures that are computed here.
    `line_rate_bps` is the rate of the host's cable, by default as in the lab. Raises `ValueError` for values
    that the emulator refuses.
    """
    if isinstance(flow.sends, Tcp):
        network.add_tcp(
            flow.source,
            flow=flow.flow,
            frame=segment_of(lab, flow),
            destination=flow.destination,
            congestion_control=flow.sends.congestion_control,
            window_bytes=flow.sends.window_bytes,
            observed=flow.observed,
        )
        return
    if line_rate_bps is None:
        line_rate_bps = lab.port_rate_bps(flow.source, 1)
    # A bucket that never limits: tokens for a frame arrive faster than the line carries frame, preamble and
    # gap.
    line = Bucket(rate_bps=line_rate_bps, burst_bytes=2 * flow.frame_bytes)
    frame, sends = frame_of(lab, flow), flow.sends
    shaped = isinstance(sends, RandomBursts | Greedy | Releases) and sends.bucket is not None
    bucket = flow.bucket if shaped else line
    if isinstance(sends, RandomBursts) and not bucket.latency_ns:
        network.add_source(
            flow.source,
            flow=flow.flow,
            frame=frame,
            sequence_offset=SEQUENCE_OFFSET,
            shaper_rate_bps=bucket.rate_bps,
            shaper_burst_bytes=bucket.burst_bytes,
            offered_rate_bps=sends.offered_rate_bps,
            burst_bytes=sends.burst_bytes,
            queue_bytes=sends.queue_bytes,
            observed=flow.observed,
            destination=flow.destination,
        )
        return
    if isinstance(sends, RandomBursts):
        # The emulator has no late timer, so departures are computed here and only the line limits them.
        instants_ns = _late_ns(flow, sends, bucket, line_rate_bps, seed=seed, end_ns=duration_ns)
        bucket = line
    elif isinstance(sends, Greedy):
        passing_bytes = bucket.burst_bytes + min(bucket.rate_bps, line_rate_bps) * duration_ns / 8e9
        instants_ns = np.zeros(int(passing_bytes // flow.frame_bytes) + 1, dtype=np.int64)
    elif isinstance(sends, Releases):
        instants_ns = sends.instants_ns
    else:
        instants_ns = sends.instants_ns(duration_ns)
    network.add_pattern(
        flow.source,
        flow=flow.flow,
        frame=frame,
        sequence_offset=SEQUENCE_OFFSET,
        shaper_rate_bps=bucket.rate_bps,
        shaper_burst_bytes=bucket.burst_bytes,
        instants_ns=instants_ns,
        observed=flow.observed,
        destination=flow.destination,
    )


def _late_ns(
    flow: Sender, sends: RandomBursts, bucket: Bucket, line_rate_bps: float, *, seed: int, end_ns: int
) -> Instants:
    """Return the departures of a sender whose shaper has a late timer."""
    shaper = Shaper(
        frame_bytes=flow.frame_bytes,
        rate_bps=int(bucket.rate_bps),
        burst_bytes=int(bucket.burst_bytes),
        queue_frames=int(sends.queue_bytes) // flow.frame_bytes,
        slot_ns=slot_ns(flow.frame_bytes, line_rate_bps),
        latency_ns=bucket.latency_ns,
    )
    offered = bursts_ns(
        np.random.default_rng((seed, flow.flow)),
        burst_frames=int(sends.burst_bytes) // flow.frame_bytes,
        mean_gap_ns=sends.mean_gap_ns,
        slot_ns=shaper.slot_ns,
        end_ns=end_ns,
    )
    leaves_ns = [at_ns for at_ns in shaper.departures_ns(offered) if at_ns < end_ns]
    return np.array(leaves_ns, dtype=np.int64)


def lab_network(
    lab: Lab,
    tables: Mapping[str, Sequence[FlowEntry]],
    *,
    seed: int,
    profile_of: Mapping[str, str] = MappingProxyType({}),
    settings: Mapping[str, Mapping[str, Setting]] = MappingProxyType({}),
    openflow: OpenFlow = OpenFlow.V1_0,
    is_captured: bool = False,
) -> switch_emulator.Network:
    """Return a simulated network of the lab with these flow tables installed, without senders.

    `profile_of` overrides the profiles of switches, by name; `settings` adds to their configuration. The
    tables are installed with the version `openflow`. With `is_captured` the network captures everything from
    then on. Raises `RunError` if a board refuses its table,
    `ValueError` if the emulator refuses anything else.
    """
    network = switch_emulator.Network(seed=seed)
    for name, switch in lab.switches.items():
        version = {} if openflow is OpenFlow.V1_0 else {"openflow_version": _WIRE_VERSION_1_3}
        config = {**switch.config, **lab.control_settings, **settings.get(name, {}), **version}
        network.add_board(name, profile=profile_of.get(name, switch.emulated_as), config=config)
    for name in lab.hosts:
        network.add_host(name)
    for link in lab.links:
        network.connect(link.a.node, link.a.port, link.b.node, link.b.port, rate_bps=lab.rate_bps(link))
    if lab.controller is not None:
        network.add_controller(_CONTROLLER, config={"ip_address": str(lab.controller.ip)})
        for port, name in enumerate(lab.switches, start=1):
            network.connect(_CONTROLLER, port, name, lab.control_port)
    if is_captured:
        network.begin_capture()
    for name, entries in tables.items():
        _install(network, name, entries, openflow, is_board=isinstance(lab.switches[name].profile, Profile))
    return network


def profile_with_capacity(name: str, capacity_factor: float) -> str:
    """Return the text of a profile with another capacity factor. Raises `InputError` if it is not allowed."""
    device = load_device(name)
    if not isinstance(device, Profile):
        raise InputError(f"profile '{name}': has no capacity_factor to replace; leave --capacity-factor out")
    allowed = device.cpu.capacity_factor.range
    if allowed is not None and not allowed[0] <= capacity_factor <= allowed[1]:
        raise InputError(
            f"capacity factor {capacity_factor:g}: profile '{name}' allows"
            f" {allowed[0]:g} to {allowed[1]:g}; choose one of these"
        )
    return profile_text(name, capacity_factor=capacity_factor)


def _install(
    network: switch_emulator.Network,
    switch: str,
    entries: Sequence[FlowEntry],
    openflow: OpenFlow,
    *,
    is_board: bool,
) -> None:
    """Open the control session and fill the table; the board must answer the barrier at the end."""
    make_segments, barrier_reply = _SESSIONS[openflow]
    segments = make_segments(entries)
    # Boards answer at once. An agent that takes its time for entries answers the barrier when it is through.
    replies = network.control(switch, segments[:-1])
    replies += network.control(switch, segments[-1:], await_reply=not is_board)
    barrier = segments[-1][4:8]
    messages, _ = whole_messages(b"".join(replies))
    answered = any(reply[1] == barrier_reply and reply[4:8] == barrier for reply in messages)
    errors = [reply for reply in messages if reply[1] == _ERROR]
    if errors or not answered:
        reason = f"error {errors[0][8:12].hex()}" if errors else "no answer to the barrier"
        raise RunError(f"{switch}: the board refused its table of {len(entries)} entries: {reason}")


_WIRE_VERSION_1_3: Final = 4
_ERROR: Final = 1  # OFPT_ERROR of all versions
_SESSIONS: Final = {
    OpenFlow.V1_0: (session_segments, 19),
    OpenFlow.V1_3: (messages13.session_segments, 21),
}
"""By version: the function that makes a session to fill a table, and the type of a barrier's reply."""
