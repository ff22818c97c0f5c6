"""Random admitted sets on switches with queues for each port, beside traffic that fills the cables.

Sets either stay, on any network, or change, on long lines
(`loko_testbed.simulation.worst_case.port_changes`). Only the flows' packets are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from loko.admission import Admitted
from loko.admission.mixed import MixedAdmission
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.whole_paths import WholePathAdmission
from loko.switch_model.control_traffic import NO_MESSAGES
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab
from loko_testbed.simulation.traffic import Instants, Sender
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.changes import random_history
from loko_testbed.simulation.worst_case.delivery import (
    DeliveryResult,
    judge_delivery,
    timed_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.other_traffic import from_hosts
from loko_testbed.simulation.worst_case.port_changes import LongLine, plan_changes
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab

PROFILES: Final = ("dell-s3048-on", "ideal-1g")
"""Devices whose tables are there within a run's set-up."""
WITH_CLASSES: Final = "ideal-1g"
"""The one of them that promises something to lower traffic classes."""
SIZES: Final = (64, 128, 306, 790, 1518)
_SIZES_OF_BOARDS: Final = ((64,), (306,), (1518,), (128, 306), (306, 790))
"""A board has no room for every mixture of sizes."""
_ENTRIES: Final = 60
_REQUESTS: Final = 80
_LEAD_NS: Final = 1_000_000
_ODD_NS: Final = 1_137
"""Added to periods: so they are no multiple of the time between checks of the queues."""
_SPREAD_NS: Final = (0, 20_000, 200_000)
_MOST_SWITCHES: Final = 6


@dataclass(frozen=True, kw_only=True)
class PortTrial:
    """A random set on a random network, and what became of its packets."""

    seed: int
    shape: str
    profile: str
    flows: int
    verdict: DeliveryResult


def port_trial(seed: int, *, packets: int, is_by_path: bool = False, classes: int = 1) -> PortTrial:
    """Send about this many packets of the seed's set. The same arguments give the same result everywhere.

    `is_by_path` admits and judges by bounds of whole paths, where flows also have deadlines. With several
    `classes`, each flow is in a random one, on chips that promise something to all of them.
    """
    rng = Random(f"ports {seed}")
    shape, profile = rng.choice(SHAPES), rng.choice(PROFILES)
    if classes > 1:
        profile = WITH_CLASSES
    lab = random_lab(rng, shape, most_switches=_MOST_SWITCHES, profiles=[profile])
    sizes = tuple(sorted(rng.sample(SIZES, rng.choice((1, 2, 3)))))
    target_ns = rng.choice((None, 150_000.0, 400_000.0))
    scenario = loko_scenario(entries=_ENTRIES, packet_sizes_bytes=sizes)
    if is_by_path:
        late = Random(f"deadlines {seed}")
        deadlines_ns = {f"f{number}": late.uniform(1e5, 2e6) for number in range(_REQUESTS)}
        admission: PortAdmission = WholePathAdmission(
            lab, scenario, target_ns=target_ns, padding=None, deadlines_ns=deadlines_ns, classes=classes
        )
    else:
        admission = PortAdmission(lab, scenario, target_ns=target_ns, classes=classes)
    _request_at_random(rng, lab, admission, sizes, most_mbps=(5, 50, 200), classes=_drawn(seed, classes))
    # Judged by the bounds of this set, which are below the targets that are promised.
    admitted = tuple(admission.as_bound_now(flow_id) for flow_id in admission.admitted)
    verdict = transmit_and_judge(lab, admitted, seed=seed, packets=packets)
    return PortTrial(seed=seed, shape=shape, profile=profile, flows=len(admitted), verdict=verdict)


def mixed_trial(seed: int, *, packets: int = 0, is_changing: bool = False, classes: int = 1) -> PortTrial:
    """Send as `port_trial` does, where switches with one server for all ports stand between chips.

    A set that changes sends what its history says, and is judged by its guarantees. With several `classes`,
    each flow is in a random one.
    """
    rng = Random(f"mixed {seed}")
    shape = rng.choice(SHAPES)
    profiles = [*rng.sample((*PROFILES, *PROFILES, "zodiac-fx"), 2), "zodiac-fx"]
    if classes > 1:
        profiles = ["zodiac-fx", WITH_CLASSES, WITH_CLASSES]
    rng.shuffle(profiles)
    lab = random_lab(rng, shape, most_switches=_MOST_SWITCHES, profiles=profiles)
    sizes, entries = rng.choice(_SIZES_OF_BOARDS), rng.choice((17, _ENTRIES))
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=sizes)
    target_ns = rng.choice((None, 5_000_000.0))
    admission = MixedAdmission(lab, scenario, traffic=NO_MESSAGES, target_ns=target_ns, classes=classes)
    if is_changing:
        history, until_ns = random_history(admission, lab, sizes, rng, entries=entries, classes=classes)
        case = history.case(AdmittedSet(lab=lab, scheme="mixed", admitted=(), entries=entries))
        senders = timed_senders(case, history.offers())
        verdict = _transmit_beside_hosts(case, senders, seed=seed, duration_ns=until_ns)
    else:
        while not admission.admitted:  # where large bursts do not fit, small ones do
            of_flow = _drawn(seed, classes)
            _request_at_random(rng, lab, admission, sizes, most_mbps=(1, 3, 8), classes=of_flow)
        admitted = tuple(admission.as_bound_now(flow_id) for flow_id in admission.admitted)
        verdict = transmit_and_judge(lab, admitted, seed=seed, packets=packets, entries=entries)
    return PortTrial(
        seed=seed,
        shape=shape,
        profile=" and ".join(sorted(set(profiles))),
        flows=len(verdict.flows),
        verdict=verdict,
    )


def _drawn(seed: int, classes: int) -> list[int]:
    """Return the traffic class of each request, one of so many."""
    rng = Random(f"classes {seed}")
    return [rng.randint(1, classes) for _ in range(_REQUESTS)]


def _request_at_random(
    rng: Random,
    lab: Lab,
    admission: PortAdmission,
    sizes: Sequence[int],
    *,
    most_mbps: Sequence[int],
    classes: Sequence[int],
) -> None:
    """Request flows of these classes and up to one of these rates, most of them between a few hosts."""
    most_frames, most = rng.choice((1, 3, 12)), rng.choice(most_mbps)
    hosts = list(lab.hosts)
    busy = rng.sample(hosts, min(len(hosts), rng.choice((3, 4, len(hosts)))))
    for number, traffic_class in enumerate(classes):
        source, destination = rng.sample(busy if rng.random() < 0.8 else hosts, 2)
        size = rng.choice(sizes)
        flow = random_flow(rng, number, (source, destination), size, most_frames=most_frames, most_mbps=most)
        admission.request(flow._replace(traffic_class=traffic_class))


def random_flow(
    rng: Random,
    number: int,
    ends: tuple[str, str],
    frame_bytes: int,
    *,
    most_frames: int,
    most_mbps: float,
) -> Flow:
    """Return a flow between two hosts with a random rate and burst up to these limits."""
    source, destination = ends
    return Flow(
        id=f"f{number}",
        source=source,
        destination=destination,
        udp_source=5000 + number,
        udp_destination=6000 + number,
        rate_bps=rng.uniform(0.2, 1.0) * most_mbps * 1e6,
        burst_bytes=float(rng.randint(1, most_frames) * frame_bytes),
        frame_bytes=frame_bytes,
    )


def changing_port_trial(seed: int) -> PortTrial:
    """Send all that the flows of a seed's changing set send. Their packets are judged by the guarantees."""
    rng = Random(f"changing ports {seed}")
    line = LongLine.drawn(rng, PROFILES, SIZES)
    lab = line.lab()
    changed = plan_changes(line, line.admission(lab), lab, rng)
    senders = timed_senders(changed.case, changed.history.offers())
    verdict = _transmit_beside_hosts(changed.case, senders, seed=seed, duration_ns=changed.until_ns)
    return PortTrial(
        seed=seed,
        shape=f"line of up to {next(most for most in (4, 8, 12) if line.chips <= most)}",
        profile=line.profile,
        flows=len(changed.case.admitted),
        verdict=verdict,
    )


def transmit_and_judge(
    lab: Lab, admitted: Sequence[Admitted], *, seed: int, packets: int, entries: int = _ENTRIES
) -> DeliveryResult:
    """Send about this many packets, in meeting bursts or at all that the buckets allow, and judge each."""
    case = AdmittedSet(lab=lab, scheme="ports", admitted=tuple(admitted), entries=entries)
    duration_ns, releases = _bursts(case, np.random.default_rng(seed), packets)
    return _transmit_beside_hosts(case, timed_senders(case, releases), seed=seed, duration_ns=duration_ns)


def _transmit_beside_hosts(
    case: AdmittedSet, senders: Sequence[Sender], *, seed: int, duration_ns: int
) -> DeliveryResult:
    """Transmit what the flows send beside traffic of low priority from every host, and judge the flows."""
    others = from_hosts(case.lab, duration_ns=duration_ns)
    return judge_delivery(case, transmit(case, senders, seed=seed, duration_ns=duration_ns, others=others))


def _bursts(case: AdmittedSet, rng: np.random.Generator, packets: int) -> tuple[int, list[Instants]]:
    """Return the duration, and by flow when its frames are offered; its bucket delays early ones.

    Either the bursts of each round begin at random instants within a spread, and the buckets refill between
    rounds; or all frames are offered at the beginning, and follow each other as fast as the buckets fill.
    """
    rate_pps = sum(flow.rate_bps / 8 / flow.frame_bytes for flow in case.flows)
    refill_ns = max(flow.burst_bytes * 8e9 / flow.rate_bps for flow in case.flows)
    is_greedy = bool(rng.integers(0, 2))
    period_ns = round(refill_ns) + 500_000 + _ODD_NS
    per_round = sum(int(flow.burst_bytes // flow.frame_bytes) for flow in case.flows)
    rounds = max(1, packets // per_round)
    duration_ns = round(packets / rate_pps * 1e9) + _LEAD_NS if is_greedy else _LEAD_NS + rounds * period_ns
    spread_ns = int(rng.choice(_SPREAD_NS))
    releases: list[Instants] = []
    for flow in case.flows:
        if is_greedy:
            frames = int((duration_ns - _LEAD_NS) * flow.rate_bps / 8e9 / flow.frame_bytes) + 1
            releases.append(np.full(frames, _LEAD_NS, dtype=np.int64))
        else:
            begins = _LEAD_NS + np.arange(rounds, dtype=np.int64) * period_ns
            begins += rng.integers(0, spread_ns + 1, rounds)
            releases.append(np.repeat(begins, int(flow.burst_bytes // flow.frame_bytes)))
    return duration_ns, releases
