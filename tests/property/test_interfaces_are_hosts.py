"""Interfaces of a host share nothing that guarantees depend on: each gets the promises of a host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.admission.planning import Plan
from loko.notebook_api import plan
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, Lab
from loko_testbed.simulation.worst_case import port_trial, random_cases
from loko_testbed.simulation.worst_case.port_trial import PortTrial
from loko_testbed.simulation.worst_case.random_cases import SHAPES, random_lab
from loko_testbed.simulation.worst_case.schemes import GUARANTEED
from loko_testbed.simulation.worst_case.trial import WAYS, Trial, run_trial

FRAME_BYTES = 306
CHOICES = (
    *(("loko", "fifth-rate"), ("loko", "full-rate"), ("packets", None), ("ports", None)),
    *(("silo", None), ("qjump", None)),
)
"""Schemes with their allocations. Where one is optimised, it also follows from the hosts' names."""


def grouped(lab: Lab, rng: Random) -> tuple[Lab, Mapping[str, str]]:
    """Return the same lab with its hosts as interfaces of a few, and the new name of each host."""
    machines = [f"m{rng.randrange(1 + len(lab.hosts) // 2)}" for _ in lab.hosts]
    called = {
        host: f"{machine}:eth{1 + machines[:number].count(machine)}"
        for number, (host, machine) in enumerate(zip(lab.hosts, machines, strict=True))
    }

    def end(of: Endpoint) -> Endpoint:
        return replace(of, node=called.get(of.node, of.node))

    hosts = {called[name]: replace(host, name=called[name]) for name, host in lab.hosts.items()}
    links = tuple(replace(link, a=end(link.a), b=end(link.b)) for link in lab.links)
    return replace(lab, hosts=MappingProxyType(hosts), links=links), called


def requested(lab: Lab, rng: Random) -> list[Flow]:
    """Draw more flows than fit, so that the last ones are refused."""
    return [
        Flow(
            id=f"f{number}",
            source=source,
            destination=destination,
            udp_source=1000 + number,
            udp_destination=2000 + number,
            rate_bps=rng.choice((20e3, 200e3, 700e3)),
            burst_bytes=float(FRAME_BYTES),
            frame_bytes=FRAME_BYTES,
        )
        for number, (source, destination) in enumerate(rng.sample(list(lab.hosts), 2) for _ in range(20))
    ]


def told(planned: Plan) -> tuple[object, ...]:
    """Return what a plan promises and what it refuses, without the names of hosts."""
    return (
        [(fit.flow.id, fit.path, fit.delays_ns, fit.guarantee_ns) for fit in planned.accepted],
        [
            (
                refusal.flow.id,
                refusal.quantity.replace(refusal.flow.source, "its host"),
                *(refusal.used, refusal.requested, refusal.allowed),
            )
            for refusal in planned.refused
        ],
    )


@pytest.mark.parametrize(("scheme", "allocation"), CHOICES)
@examples(8)
@given(seed=st.integers(0, 2**32), shape=st.sampled_from(SHAPES))
def test_a_plan_promises_interfaces_what_it_promises_hosts(
    scheme: str, allocation: str | None, seed: int, shape: str
) -> None:
    profile, times = ("dell-s3048-on", 1_000) if scheme == "ports" else ("zodiac-fx", 1)
    lab = random_lab(Random(seed), shape, profiles=[profile])
    of_interfaces, called = grouped(lab, Random(seed))
    flows = [flow._replace(rate_bps=times * flow.rate_bps) for flow in requested(lab, Random(seed))]
    renamed = [
        flow._replace(source=called[flow.source], destination=called[flow.destination]) for flow in flows
    ]
    planned = plan(lab, flows, scheme=scheme, allocation=allocation)
    assert told(planned) == told(plan(of_interfaces, renamed, scheme=scheme, allocation=allocation))
    assert planned.accepted or scheme == "qjump"


def carried(seed: int, scheme: str, monkeypatch: pytest.MonkeyPatch, *, is_grouped: bool) -> Trial:
    def drawn_lab(rng: Random, shape: str) -> Lab:
        lab = random_lab(rng, shape)
        return grouped(lab, Random(seed))[0] if is_grouped else lab

    monkeypatch.setattr(random_cases, "random_lab", drawn_lab)
    return run_trial(seed, packets=3_000, scheme=scheme)


@pytest.mark.parametrize("scheme", sorted(GUARANTEED))
def test_the_worst_senders_break_no_guarantee_of_interfaces_and_fare_as_hosts_do(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = set()
    for seed in (0, 1, 3, 4):  # of 2, joint allocations take seconds
        of_interfaces = carried(seed, scheme, monkeypatch, is_grouped=True)
        assert any(host.interface for host in of_interfaces.drawn.case.lab.hosts.values())
        assert not of_interfaces.failed, (seed, of_interfaces.verdict)
        hosts = carried(seed, scheme, monkeypatch, is_grouped=False)
        assert "optimised" in scheme or asdict(of_interfaces.verdict) == asdict(hosts.verdict), seed
        ways.add(of_interfaces.way)
    assert len(ways) > 1, WAYS


def test_the_worst_senders_break_no_guarantee_of_interfaces_at_switches_with_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def carried_by_ports(seed: int, *, is_grouped: bool) -> PortTrial:
        def drawn_lab(rng: Random, shape: str, **options: Any) -> Lab:
            lab = random_lab(rng, shape, **options)
            return grouped(lab, Random(seed))[0] if is_grouped else lab

        monkeypatch.setattr(port_trial, "random_lab", drawn_lab)
        return port_trial.port_trial(seed, packets=1_000)

    for seed in range(4):
        of_interfaces, hosts = (carried_by_ports(seed, is_grouped=is_grouped) for is_grouped in (True, False))
        assert not of_interfaces.verdict.broken
        assert asdict(of_interfaces.verdict) == asdict(hosts.verdict), seed
        assert of_interfaces.flows
