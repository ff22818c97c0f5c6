"""Random admitted sets on switches with queues for each port, beside traffic that fills the cables.

Sets either stay, on any network, or change, on long lines
(`loko_testbed.simulation.worst_case.port_changes`). Everything that is not admitted waits in the lowest
queues. It makes frames of the flows wait for checks of the queues and for frames on the wire, and takes
shared memory. Only the flows' packets are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from loko.admission import Admitted
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.whole_paths import WholePathAdmission
from loko.control.entries import FlowEntry, flow_entry, switch_entries
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab
from loko.topology.network import shortest_path
from loko_testbed.simulation.traffic import Instants, Releases, Sender
from loko_testbed.simulation.virtual import PoweredLab, lab_network
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import (
    DRAIN_NS,
    DeliveryResult,
    judge_delivery,
    timed_senders,
)
from loko_testbed.simulation.worst_case.port_changes import LongLine, plan_changes
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab

PROFILES: Final = ("dell-s3048-on", "ideal-1g")
"""Devices whose tables are there within a run's set-up."""
SIZES: Final = (64, 128, 306, 790, 1518)
_ENTRIES: Final = 60
_REQUESTS: Final = 80
_OTHERS: Final = 700
"""The number of the first flow of low priority."""
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


def port_trial(seed: int, *, packets: int, is_by_path: bool = False) -> PortTrial:
    """Send about this many packets of the seed's set. The same arguments give the same result everywhere.

    `is_by_path` admits and judges by bounds of whole paths, where flows also have deadlines.
    """
    rng = Random(f"ports {seed}")
    shape, profile = rng.choice(SHAPES), rng.choice(PROFILES)
    lab = random_lab(rng, shape, most_switches=_MOST_SWITCHES, profile=profile)
    sizes = tuple(sorted(rng.sample(SIZES, rng.choice((1, 2, 3)))))
    target_ns = rng.choice((None, 150_000.0, 400_000.0))
    scenario = loko_scenario(entries=_ENTRIES, packet_sizes_bytes=sizes)
    if is_by_path:
        late = Random(f"deadlines {seed}")
        deadlines_ns = {f"f{number}": late.uniform(1e5, 2e6) for number in range(_REQUESTS)}
        admission: PortAdmission = WholePathAdmission(
            lab, scenario, target_ns=target_ns, padding=None, deadlines_ns=deadlines_ns
        )
    else:
        admission = PortAdmission(lab, scenario, target_ns=target_ns)
    most_frames, most_mbps = rng.choice((1, 3, 12)), rng.choice((5, 50, 200))
    hosts = list(lab.hosts)
    busy = rng.sample(hosts, min(len(hosts), rng.choice((3, 4, len(hosts)))))
    for number in range(_REQUESTS):
        source, destination = rng.sample(busy if rng.random() < 0.8 else hosts, 2)
        size = rng.choice(sizes)
        admission.request(
            Flow(
                id=f"f{number}",
                source=source,
                destination=destination,
                udp_source=5000 + number,
                udp_destination=6000 + number,
                rate_bps=rng.uniform(0.2, 1.0) * most_mbps * 1e6,
                burst_bytes=float(rng.randint(1, most_frames) * size),
                frame_bytes=size,
            )
        )
    # Judged by the bounds of this set, which are below the targets that are promised.
    admitted = tuple(admission.as_bound_now(flow_id) for flow_id in admission.admitted)
    verdict = transmit_and_judge(lab, admitted, seed=seed, packets=packets)
    return PortTrial(seed=seed, shape=shape, profile=profile, flows=len(admitted), verdict=verdict)


def changing_port_trial(seed: int) -> PortTrial:
    """Send all that the flows of a seed's changing set send. Their packets are judged by the guarantees."""
    rng = Random(f"changing ports {seed}")
    line = LongLine.drawn(rng, PROFILES, SIZES)
    lab = line.lab()
    changed = plan_changes(line, line.admission(lab), lab, rng)
    senders = timed_senders(changed.case, changed.history.offers())
    verdict = transmit_beside_others(changed.case, senders, seed=seed, duration_ns=changed.until_ns)
    return PortTrial(
        seed=seed,
        shape=f"line of up to {next(most for most in (4, 8, 12) if line.chips <= most)}",
        profile=line.profile,
        flows=len(changed.case.admitted),
        verdict=verdict,
    )


def transmit_and_judge(lab: Lab, admitted: Sequence[Admitted], *, seed: int, packets: int) -> DeliveryResult:
    """Send about this many packets, in meeting bursts or at all that the buckets allow, and judge each."""
    case = AdmittedSet(lab=lab, scheme="ports", admitted=tuple(admitted), entries=_ENTRIES)
    duration_ns, releases = _bursts(case, np.random.default_rng(seed), packets)
    return transmit_beside_others(case, timed_senders(case, releases), seed=seed, duration_ns=duration_ns)


def transmit_beside_others(
    case: AdmittedSet,
    senders: Sequence[Sender],
    *,
    seed: int,
    duration_ns: int,
    capture: Callable[[PoweredLab], None] | None = None,
) -> DeliveryResult:
    """Transmit what the flows send beside traffic of low priority from every host, and judge the flows.

    After the run, `capture` may take what was captured of it.
    """
    lab = case.lab
    tables, others = beside_others(
        lab, switch_entries(lab, case.admitted, entries=case.entries), duration_ns=duration_ns
    )
    network = lab_network(lab, tables, seed=seed, is_captured=capture is not None)
    powered = PoweredLab(lab, network, seed)
    records = powered.run([*senders, *others], duration_ns=duration_ns, drain_ns=DRAIN_NS)
    if capture is not None:
        capture(powered)
    seen = {number: packets for number, packets in records.flows.items() if number < _OTHERS}
    return judge_delivery(case, replace(records, flows=seen))


def beside_others(
    lab: Lab, tables: Mapping[str, Sequence[FlowEntry]], *, duration_ns: int
) -> tuple[dict[str, list[FlowEntry]], list[Sender]]:
    """Return tables with entries for a flow of low priority from each host, and the senders of these."""
    with_others = {name: list(entries) for name, entries in tables.items()}
    senders = []
    for number, low in enumerate(_others(lab)):
        for hop in shortest_path(lab, low.source, low.destination):
            # Without a queue, an entry sends to the lowest one.
            with_others[hop.switch].append(replace(flow_entry(lab, low, hop.output_port), priority=1))
        instants = np.arange(0, duration_ns, 25_000 + 100 * number, dtype=np.int64)
        sends = Releases(instants_ns=instants, bucket=None)
        senders.append(Sender.of(_OTHERS + number, low, sends, observed=False))
    return with_others, senders


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


def _others(lab: Lab) -> list[Flow]:
    """Return a flow of low priority from each host: half of its cable's rate, in the largest frames."""
    hosts = list(lab.hosts)
    return [
        Flow(
            id=f"low{number}",
            source=source,
            destination=next(other for other in reversed(hosts) if other != source),
            udp_source=_OTHERS + number,
            udp_destination=_OTHERS + number,
            rate_bps=5e8,
            burst_bytes=1518.0,
            frame_bytes=1518,
        )
        for number, source in enumerate(hosts)
    ]
