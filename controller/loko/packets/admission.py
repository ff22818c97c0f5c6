"""Packet-granular admission: accepted as long as no frame can be later than the switch's fixed delay target.

The theorem and its proof: docs/packet-granular.md. All work is counted in whole nanoseconds of the CPU, so
that releasing a flow restores exactly what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from loko.admission import Admitted, Refusal, Register, Usage, what_fits_on
from loko.allocation import FULL_RATE
from loko.calculus import bytes_in
from loko.control_traffic import NO_MESSAGES, ControlTraffic
from loko.device import deterministic
from loko.flow import Flow
from loko.lab import Lab
from loko.lab_allocation import allocations_of
from loko.network import Hop
from loko.on_demand import OnDemand
from loko.packets.server import FrameServer, frame_server
from loko.packets.staircase import Grid
from loko.packets.switch import Load, SwitchUse
from loko.scenario import Scenario, Unknown

SCHEME: Final = "packet-granular"


def default_targets(lab: Lab, scenario: Scenario) -> dict[str, float]:
    """The delay bound of the paper's full-rate allocation, for each switch: 1.86 ms in section 6."""
    return {name: one.delay_ns for name, one in allocations_of(lab, FULL_RATE, scenario).items()}


class _Passage(NamedTuple):
    """Frames of one size on one path, at one switch."""

    switch: SwitchUse
    input_port: int
    jitter_ns: int
    delay_ns: int
    service_ns: int


class _Route:
    """A path, with what a decision has to know of its switches."""

    def __init__(self, path: tuple[Hop, ...], ways: Sequence[tuple[SwitchUse, int]]) -> None:
        """`ways` are the switches, each with the port that frames come by."""
        self.path = path
        self._ways = ways
        self._passages: dict[int, tuple[_Passage, ...]] = {}

    def passages(self, frame_bytes: int) -> tuple[_Passage, ...]:
        """The switches in order. Raises `InputError` for a size that was not planned for."""
        if frame_bytes not in self._passages:
            self._passages[frame_bytes] = tuple(self._passed(frame_bytes))
        return self._passages[frame_bytes]

    def _passed(self, frame_bytes: int) -> Iterator[_Passage]:
        jitter_ns = 0
        for switch, input_port in self._ways:
            delay_ns = switch.delay_ns(frame_bytes)
            server = switch.server
            service_ns = server.times[frame_bytes].service_ns
            yield _Passage(switch, input_port, jitter_ns, delay_ns, service_ns)
            if jitter_ns == 0:
                jitter_ns = server.sender_queue_ns(switch.work_ns)
            jitter_ns += server.jitter_ns(frame_bytes, switch.work_ns)


class PacketAdmission:
    """Admission by staircases of whole frames. A decision costs O(path), however many flows are admitted."""

    def __init__(
        self,
        lab: Lab,
        scenario: Scenario,
        targets: Mapping[str, float] | None = None,
        *,
        traffic: ControlTraffic = NO_MESSAGES,
        fillers: int | None = None,
        grid: Grid | None = None,
    ) -> None:
        """Start empty. `targets` has for every switch the largest delay in ns, first bit in to first out.

        Without it that of the paper's full-rate allocation. `traffic`: see `frame_server`. `fillers`: see
        `loko.schemes.admission_of`. Raises `InputError` if a switch has no worst case or cannot forward even
        a single frame in time.
        """
        self._register = Register(lab, self._prepare)
        self._loads: dict[str, list[tuple[SwitchUse, Load]]] = {}
        self._lab = lab
        self._targets = dict(targets or default_targets(lab, scenario))
        self._scenario, self._traffic, self._fillers = scenario, traffic, fillers
        self._grid = grid or Grid.standard()
        self._servers: dict[tuple[int, float | None], FrameServer] = {}
        self._switches = OnDemand(self._switch)
        # One switch of each kind at once: it shows whether such a switch can forward anything.
        kinds: dict[tuple[int, float], str] = {}
        for name, switch in lab.switches.items():
            kinds.setdefault((id(switch.profile), self._targets[name]), name)
        for name in kinds.values():
            self._server(name)
        for name in kinds.values():
            self._switches[name] = self._switch(name)

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return SCHEME

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer, without admitting anything."""
        answer = self._decide(flow, self._register.route(flow, path))[0]
        return answer if isinstance(answer, Admitted) else self._advised(answer, path)

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Admit a flow along a path, by default the shortest, or say why not.

        Raises `InputError` for unknown hosts, a path that does not connect them, an id or ports in use, or
        frames that the model does not cover.
        """
        answer, loads = self._decide(flow, self._register.route(flow, path))
        if isinstance(answer, Admitted):
            self._register.add(answer)
            self._loads[flow.id] = loads
            for switch, load in loads:
                switch.add(flow.id, load)
            return answer
        return self._advised(answer, path)

    def release(self, flow_id: str) -> None:
        """Give back what a flow uses. Raises `InputError` if it was not admitted."""
        self._register.remove(flow_id)
        for switch, load in self._loads.pop(flow_id):
            switch.remove(flow_id, load)

    def release_all(self) -> None:
        """Give back what all flows use: as `release` of each, but without looking at them."""
        self._register.clear()
        self._loads.clear()
        for switch in self._switches.values():
            switch.clear()

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now. It depends on the set of flows only, not on their history."""
        return self._switches[switch].usage()

    def _advised(self, refusal: Refusal, path: Sequence[Hop] | None) -> Refusal:
        return refusal._replace(advice=partial(what_fits_on, self.check, path))

    def _decide(self, flow: Flow, route: _Route) -> tuple[Admitted | Refusal, list[tuple[SwitchUse, Load]]]:
        passages = route.passages(flow.frame_bytes)
        loads = []
        for switch, input_port, jitter_ns, _, service_ns in passages:
            load = switch.load(flow, input_port=input_port, jitter_ns=jitter_ns, service_ns=service_ns)
            if (refusal := switch.refusal(flow, load)) is not None:
                return refusal, []
            loads.append((switch, load))
        bursts = [
            flow.burst_bytes + bytes_in(rate_bps=flow.rate_bps, duration_ns=passage.jitter_ns)
            for passage in passages
        ]
        delays_ns = tuple(passage.delay_ns for passage in passages)
        return Admitted(flow, route.path, tuple(bursts), delays_ns), loads

    def _prepare(self, source: str, path: tuple[Hop, ...]) -> _Route:
        ways = []
        end = self._lab.far_end(source, 1)
        for hop in path:
            assert end is not None, "the register has checked the path"
            ways.append((self._switches[hop.switch], end.port))
            end = self._lab.far_end(hop.switch, hop.output_port)
        return _Route(path, ways)

    def _server(self, name: str) -> FrameServer:
        """Switches of the same profile and wait share one."""
        device = self._lab.switches[name].profile
        wait_ns = None if self._lab.controller is None else self._targets[name]
        kind = id(device), wait_ns
        if kind not in self._servers:
            fillers = self._fillers
            self._servers[kind] = frame_server(
                deterministic(device),
                self._scenario,
                self._traffic,
                least_entries=None if fillers is None else fillers + 1,
                control_wait_ns=wait_ns,
            )
        return self._servers[kind]

    def _switch(self, name: str) -> SwitchUse:
        lab, entries = self._lab, self._scenario.entries
        if isinstance(entries, Unknown):
            entries = lab.switches[name].profile.table.entries.value
        switch = SwitchUse(
            name,
            self._server(name),
            self._grid,
            target_ns=self._targets[name],
            max_entries=entries - (self._fillers or 0),
        )
        for port, far in lab.neighbours(name):
            if far.node in lab.switches:
                switch.shape_by_switch(port, self._server(far.node))
            else:
                switch.shape_by_link(port)
        return switch
