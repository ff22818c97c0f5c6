"""Packet-granular admission: accepted as long as no frame can be later than the switch's fixed delay target.

The theorem and its proof: docs/packet-granular.md. All work is counted in whole nanoseconds of the CPU, so
that releasing a flow restores exactly what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from loko.admission import Admitted, Refusal, Register, Usage
from loko.allocation import FULL_RATE, allocate
from loko.calculus import bytes_in
from loko.control_traffic import NO_MESSAGES, ControlTraffic
from loko.device import deterministic
from loko.flow import Flow
from loko.lab import Endpoint, Lab
from loko.network import Hop
from loko.packets.server import frame_server
from loko.packets.staircase import Grid
from loko.packets.switch import Load, SwitchUse
from loko.scenario import Scenario, Unknown
from loko.service import service_curve

SCHEME: Final = "packet-granular"


def default_targets(lab: Lab, scenario: Scenario) -> dict[str, float]:
    """The delay bound of the paper's full-rate allocation, for each switch: 1.86 ms in section 6."""
    return {
        name: allocate(service_curve(deterministic(switch.profile), scenario), FULL_RATE).delay_ns
        for name, switch in lab.switches.items()
    }


class _Passage(NamedTuple):
    """Frames of one size on one path, at one switch."""

    switch: SwitchUse
    input_port: int
    jitter_ns: int
    delay_ns: int
    service_ns: int


class Route:
    """A path, with what a decision has to know of its switches."""

    def __init__(
        self, path: tuple[Hop, ...], ways: Sequence[tuple[SwitchUse, int]], *, jitter_grows: bool
    ) -> None:
        """`ways` are the switches, each with the port that frames come by."""
        self.path = path
        self._jitter_grows = jitter_grows
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
            if not self._jitter_grows:
                continue
            if jitter_ns == 0:
                jitter_ns = server.sender_queue_ns(switch.work_ns)
            jitter_ns += server.jitter_ns(frame_bytes, switch.work_ns)


class PacketAdmission:
    """Admission by staircases of whole frames. A decision costs O(path), however many flows are admitted."""

    _jitter_grows: ClassVar[bool] = True
    """Without it nothing is guaranteed: only a ceiling of what better bounds could accept."""

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
        self._far = dict(lab.cables())
        wanted = targets or default_targets(lab, scenario)
        servers = {
            name: frame_server(
                deterministic(switch.profile),
                scenario,
                traffic,
                least_entries=None if fillers is None else fillers + 1,
                control_wait_ns=None if lab.controller is None else wanted[name],
            )
            for name, switch in lab.switches.items()
        }
        entries = scenario.entries
        self._switches = {
            name: SwitchUse(
                name,
                server,
                grid or Grid.standard(),
                target_ns=wanted[name],
                max_entries=(
                    lab.switches[name].profile.table.entries.value
                    if isinstance(entries, Unknown)
                    else entries
                )
                - (fillers or 0),
            )
            for name, server in servers.items()
        }
        for name, switch in self._switches.items():
            for port, far in lab.neighbours(name):
                if far.node in servers:
                    switch.shape_by_switch(port, servers[far.node])
                else:
                    switch.shape_by_link(port)

    @property
    def scheme(self) -> str:
        """Name of the scheme."""
        return SCHEME

    @property
    def switches(self) -> Mapping[str, SwitchUse]:
        """What is used of each switch."""
        return self._switches

    @property
    def admitted(self) -> Mapping[str, Admitted]:
        """The accepted flows by id, in order of admission."""
        return self._register.admitted

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """What `request` would answer, without admitting anything."""
        return self._decide(flow, self._register.route(flow, path))[0]

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

    def _decide(self, flow: Flow, route: Route) -> tuple[Admitted | Refusal, list[tuple[SwitchUse, Load]]]:
        loads = []
        for switch, load in self._offered(flow, route):
            if (refusal := switch.refusal(flow, load)) is not None:
                return refusal, []
            loads.append((switch, load))
        return self._accepted(flow, route), loads

    def _offered(self, flow: Flow, route: Route) -> Iterator[tuple[SwitchUse, Load]]:
        """What the flow would bring to each switch, one by one."""
        for switch, input_port, jitter_ns, _, service_ns in route.passages(flow.frame_bytes):
            yield (
                switch,
                switch.load(flow, input_port=input_port, jitter_ns=jitter_ns, service_ns=service_ns),
            )

    def _accepted(self, flow: Flow, route: Route) -> Admitted:
        passages = route.passages(flow.frame_bytes)
        bursts = [
            flow.burst_bytes + bytes_in(rate_bps=flow.rate_bps, duration_ns=passage.jitter_ns)
            for passage in passages
        ]
        delays_ns = tuple(passage.delay_ns for passage in passages)
        return Admitted(flow, route.path, tuple(bursts), delays_ns)

    def _prepare(self, source: str, path: tuple[Hop, ...]) -> Route:
        ways = []
        before = Endpoint(node=source, port=1)
        for hop in path:
            ways.append((self._switches[hop.switch], self._far[before].port))
            before = Endpoint(node=hop.switch, port=hop.output_port)
        return Route(path, ways, jitter_grows=self._jitter_grows)
