"""Admitted sets drawn from a seed: topology, table, sizes, rates, bursts, control traffic.

The same seed gives the same case on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from loko.admission import Admission, Admitted, Refusal
from loko.admission.routing import admit
from loko.document import InputError
from loko.switch_model.control_traffic import ControlTraffic, MessageRate, MessageType
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab, lab_of
from loko_testbed.simulation.planned_control import SENDABLE
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.schemes import GUARANTEED, admission_named

_PORTS: Final = 4
_MOST_SWITCHES: Final = 12
_REQUESTS: Final = 90
_TOPPING_UP: Final = 6
_ROUTED: Final = 0.5
"""Share of the cases in which flows take other paths if the shortest has no room."""
_LEAST_RATE_BPS: Final = 5_000
_ENTRIES: Final = (6, 10, 17, 33, 64, 128)
_SIZES: Final = (64, 65, 100, 128, 129, 200, 256, 257, 306, 384, 512, 548, 790, 1032, 1274, 1516, 1518)
SHAPES: Final = ("line", "tree", "ring", "one-way ring", "cycles")


@dataclass(frozen=True, kw_only=True)
class RandomCase:
    """A case, and what it was drawn from."""

    seed: int
    case: AdmittedSet
    admission: Admission
    """The admission control that has admitted it."""
    shape: str
    switches: int
    sizes: tuple[int, ...]

    @property
    def mixed(self) -> bool:
        """Whether frames of several sizes share the switches."""
        return len(self.sizes) > 1


def random_case(seed: int, *, scheme: str | None = None, openflow: OpenFlow = OpenFlow.V1_0) -> RandomCase:
    """Draw the case of a seed, of a given scheme or of any whose guarantees must hold."""
    for attempt in range(1000):
        rng = Random(f"{seed} {attempt}")
        chosen = scheme or rng.choice(GUARANTEED)
        try:
            case = _draw(rng, seed, chosen, openflow)
        except InputError:
            continue  # such as a table too fast for its links, or a control load that leaves nothing
        if case.case.admitted:
            return case
    raise AssertionError(f"seed {seed}: nothing is ever admitted")


def _draw(rng: Random, seed: int, scheme: str, openflow: OpenFlow) -> RandomCase:
    shape = rng.choice(SHAPES)
    lab = random_lab(rng, shape)
    entries = rng.choice(_ENTRIES)
    sizes = tuple(sorted(rng.sample(_SIZES, rng.choice((1, 1, 2, 3)))))
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=sizes, openflow=openflow)
    control = _control(rng)
    admission = admission_named(scheme, lab, scenario, control=control, mix=_mix(rng, sizes))
    # A generator of its own, so that this choice changes nothing else in a seed's case.
    is_routed = Random(f"{seed} paths").random() < _ROUTED
    admitted = tuple(_admitted(rng, lab, sizes, admission, is_routed=is_routed))
    return RandomCase(
        seed=seed,
        admission=admission,
        case=AdmittedSet(
            lab=lab,
            scheme=scheme,
            admitted=admitted,
            entries=entries,
            control=control,
            openflow=openflow,
        ),
        shape=shape,
        switches=len(lab.switches),
        sizes=sizes,
    )


def _control(rng: Random) -> ControlTraffic:
    """Draw control traffic: usually some, never so much that it leaves nothing for the flows."""
    kinds = rng.sample(SENDABLE, rng.choice((0, 1, 1, 2)))
    # Of two statistics requests at once one reply is lost, since too much waits for acknowledgement (quirk
    # 70). After two heartbeats at once the next one would come too late to break the silence.
    alone = (MessageType.FLOW_STATISTICS, MessageType.HEARTBEAT)
    return {
        kind: MessageRate(
            per_s=rng.choice((0.5, 1.0, 5.0)),
            burst=1 if kind in alone else rng.choice((1, 1, 2)),
        )
        for kind in kinds
    }


def _mix(rng: Random, sizes: tuple[int, ...]) -> Mix:
    """Draw the mix that schemes for an expected mix are told. The actual flows differ from it."""
    return Mix(
        kinds=[
            FlowKind(
                rate_bps=float(rng.choice((2e4, 1e5, 3e5, 1e6))),
                burst_bytes=float(rng.randint(1, 3) * size),
                frame_bytes=size,
            )
            for size in sizes
        ],
        requests=_REQUESTS,
    )


def _admitted(
    rng: Random, lab: Lab, sizes: tuple[int, ...], admission: Admission, *, is_routed: bool
) -> list[Admitted]:
    """Yield the flows that fit of many requests. Large ones come first, so that small ones fill the rest.

    They take the shortest path or, if `is_routed`, the best one that has room.
    """
    hosts = list(lab.hosts)
    # Usually a few hosts take part in all flows, so that their switches are used up.
    busy = rng.sample(hosts, min(len(hosts), rng.choice((2, 3, 4, len(hosts)))))
    largest = rng.choice((3e5, 1e6, 3e6, 1e7))
    most_frames = rng.choice((1, 3, 6))
    for number in range(_REQUESTS):
        source, destination = rng.sample(busy if rng.random() < 0.8 else hosts, 2)
        frame_bytes = rng.choice(sizes)
        shrink = 1 - number / _REQUESTS
        frames = rng.randint(1, max(1, round(most_frames * shrink)))
        flow = _flow(
            number,
            (source, destination),
            frame_bytes,
            rate_bps=max(_LEAST_RATE_BPS, round(largest * shrink * rng.random())),
            burst_bytes=frames * frame_bytes + rng.choice((0, 0, frame_bytes // 2)),
        )
        if is_routed:
            admit(lab, admission, flow)
        else:
            admission.request(flow)
    for number in range(_REQUESTS, _REQUESTS + _TOPPING_UP):
        _top_up(rng, number, (busy, sizes), admission)
    return list(admission.admitted.values())


def _top_up(
    rng: Random, number: int, choices: tuple[list[str], tuple[int, ...]], admission: Admission
) -> None:
    """Request a flow that takes the last bit of rate, or of burst, that is left on its path."""
    busy, sizes = choices
    pair, frame_bytes = (*rng.sample(busy, 2),), rng.choice(sizes)
    wants_rate = rng.random() < 0.5

    def asking(value: int) -> Flow:
        rate_bps, burst_bytes = (value, frame_bytes) if wants_rate else (_LEAST_RATE_BPS, value)
        return _flow(number, pair, frame_bytes, rate_bps=rate_bps, burst_bytes=burst_bytes)

    least, most = (_LEAST_RATE_BPS, 20_000_000) if wants_rate else (frame_bytes, 25 * frame_bytes)
    if isinstance(admission.check(asking(least)), Refusal):
        return
    while most - least > 1:
        middle = (least + most) // 2
        if isinstance(admission.check(asking(middle)), Refusal):
            most = middle
        else:
            least = middle
    admission.request(asking(least))


def _flow(
    number: int, pair: tuple[str, ...], frame_bytes: int, *, rate_bps: float, burst_bytes: float
) -> Flow:
    return Flow(
        id=f"f{number}",
        source=pair[0],
        destination=pair[1],
        udp_source=5000 + number,
        udp_destination=6000 + number,
        rate_bps=float(rate_bps),
        burst_bytes=float(burst_bytes),
        frame_bytes=frame_bytes,
    )


def random_lab(
    rng: Random, shape: str, *, most_switches: int = _MOST_SWITCHES, profiles: Sequence[str] = ("zodiac-fx",)
) -> Lab:
    """Cable switches at four ports at random in one of `SHAPES`, each with one or two hosts.

    The switches have the profiles one after another.
    """
    least = 3 if "ring" in shape or shape == "cycles" else 2
    count = rng.randint(least, rng.choice((4, most_switches)))
    edges = _edges(rng, shape, count)
    free = {number: list(range(1, _PORTS + 1)) for number in range(count)}
    links: list[dict[str, object]] = []
    for a, b in edges:
        ends = {"a": f"s{a}:{free[a].pop()}", "b": f"s{b}:{free[b].pop()}"}
        links.append({**ends, "one_way": shape == "one-way ring"})
    hosts: dict[str, Mapping[str, str]] = {}
    for number, ports in free.items():
        for port in ports[: rng.randint(1, 2)]:
            name = f"h{len(hosts)}"
            hosts[name] = {
                "mac": f"02:00:00:00:00:{len(hosts):02x}",
                "ip": f"10.0.{number}.{port}/16",
            }
            links.append({"a": name, "b": f"s{number}:{port}"})
    return lab_of(
        {
            "name": "random",
            "title": f"{shape} of {count} switches",
            "switches": {
                f"s{number}": _switch(number, profiles[number % len(profiles)]) for number in range(count)
            },
            "hosts": hosts,
            "links": links,
            "control_port": 0,
        }
    )


def _switch(number: int, profile: str) -> dict[str, object]:
    mac = f"70:b3:d5:6c:00:{number:02x}"
    if profile != "zodiac-fx":
        return {"datapath_id": f"00:00:{mac}", "profile": profile}
    return {
        "datapath_id": f"00:00:{mac}",
        "profile": profile,
        "config": {
            "mac": mac,
            "ofchecks": False,  # section 3.1
            "openflow_ports": list(range(1, _PORTS + 1)),
            "native_ports": [],
        },
    }


def _edges(rng: Random, shape: str, count: int) -> list[tuple[int, int]]:
    """Return the cables between switches. Each switch keeps a port for a host."""
    if "ring" in shape:
        return [(number, (number + 1) % count) for number in range(count)]
    if shape == "line":
        return [(number, number + 1) for number in range(count - 1)]
    degree = [0] * count
    edges: list[tuple[int, int]] = []
    for number in range(1, count):
        open_ends = [other for other in range(number) if degree[other] < _PORTS - 1]
        other = rng.choice(open_ends)
        edges.append((other, number))
        degree[other] += 1
        degree[number] += 1
    for _ in range(count if shape == "cycles" else 0):
        a, b = rng.sample(range(count), 2)
        if max(degree[a], degree[b]) < _PORTS - 1 and (a, b) not in edges and (b, a) not in edges:
            edges.append((a, b))
            degree[a] += 1
            degree[b] += 1
    return edges
