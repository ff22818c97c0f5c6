"""The allocation `optimised` is never worse than the fixed ones, feasible like them, and an optimum."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from loko.admission import Admitted, LokoAdmission
from loko.admission.optimised.filling import FluidNetwork, fill
from loko.admission.optimised.search import SAMPLES, optimised_splits
from loko.admission.optimised.streams import expected_requests, streams_of
from loko.admission.schemes import VARIANTS, SchemeName, SchemeVariant, admission_of, variant_named
from loko.document import LABS, InputError
from loko.switch_model.allocation import ALLOCATION_RULES, OPTIMISED, allocate, frontier
from loko.switch_model.calculus import RateLatency, TokenBucket, backlog_bound_bytes
from loko.switch_model.control_traffic import MessageRate, MessageType, interference
from loko.switch_model.device import deterministic
from loko.switch_model.mix import FlowKind, Mix, PathLength, TrafficPair, load_mix
from loko.switch_model.scenario import EVALUATION, loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab, ring_lab
from loko.topology.lab_allocation import Allocator, allocations_of
from loko.topology.ring import Ring
from loko_testbed.cli.main import app
from loko_testbed.reproduce.figure_types.allocation import allocation_of
from loko_testbed.reproduce.figure_types.experiments import experiments

LAB = load_lab("two-switch")
RING = ring_lab(Ring(switches=3, hosts_per_switch=2))
LABS_TRIED = st.sampled_from([LAB, RING])


def kind(rate_bps=100e3, frames=1.0, frame_bytes=306, **rest) -> FlowKind:
    return FlowKind(rate_bps=rate_bps, burst_bytes=frames * frame_bytes, frame_bytes=frame_bytes, **rest)


kinds = st.builds(
    kind,
    rate_bps=st.floats(2e4, 4e6),
    frames=st.sampled_from([1.0, 1.5, 2.0, 4.0]),
    frame_bytes=st.sampled_from([128, 306]),
    weight=st.floats(0.1, 10),
    value=st.sampled_from([1.0, 1.0, 2.5]),
    deadline_ms=st.one_of(st.none(), st.floats(0.5, 8)),
)
mixes = st.builds(
    lambda several, requests: Mix(kinds=several, requests=requests),
    st.lists(kinds, min_size=1, max_size=3),
    st.integers(1, 50),
)


def scenario_of(mix: Mix):
    return loko_scenario(entries=17, packet_sizes_bytes=mix.frame_bytes)


def worth(lab: Lab, mix: Mix, schemes) -> float:
    """Recount the value of the flows that Loko's admission control accepts within their deadlines."""
    streams, scenario, total = streams_of(lab, mix), scenario_of(mix), 0.0
    for sample in SAMPLES:
        admission = LokoAdmission(lab, allocations_of(lab, schemes, scenario))
        for flow, place in expected_requests(streams, mix.requests, sample):
            answer = admission.check(flow)
            stream = streams[place]
            if isinstance(answer, Admitted) and answer.guarantee_ns <= stream.deadline_ns:
                admission.request(flow)
                total += stream.kind.value
    return total


@examples(12)
@given(LABS_TRIED, mixes)
def test_never_worse_than_the_fixed_allocations(lab, mix) -> None:
    fixed = [worth(lab, mix, scheme) for scheme in ALLOCATION_RULES.values()]
    try:
        chosen = optimised_splits(lab, scenario_of(mix), mix)
    except InputError:
        assert max(fixed) == 0
        return
    assert worth(lab, mix, chosen) >= max(fixed)


def test_better_than_both_where_rate_and_burst_run_out_together() -> None:
    mix = Mix(kinds=[kind(875e3, path_lengths=[PathLength(hops=0)])], requests=60)
    chosen = worth(RING, mix, optimised_splits(RING, EVALUATION, mix))
    assert chosen > 1.1 * max(worth(RING, mix, scheme) for scheme in ALLOCATION_RULES.values())


@examples(8)
@given(LABS_TRIED, mixes, st.sampled_from([None, {}, {MessageType.ECHO: MessageRate(per_s=10)}]))
def test_feasible_by_the_checks_of_the_fixed_ones(lab, mix, traffic) -> None:
    scenario = scenario_of(mix)
    try:
        chosen = optimised_splits(lab, scenario, mix, traffic=traffic)
    except InputError:
        return
    for name, allocation in allocations_of(lab, chosen, scenario, traffic).items():
        service = allocation.service
        taken = None if traffic is None else interference(service.profile, traffic, 17)
        limits = frontier(service) if taken is None else frontier(service, taken)
        left = 1.0 if taken is None else 1 - taken.share
        assert allocation.feasible
        assert allocation.scheme.name == OPTIMISED
        assert allocation.max_rate_bps <= left * service.rate_bps * (1 + 1e-12)
        server = RateLatency(rate_bps=left * service.rate_bps, latency_ns=limits.latency_ns)
        flows = TokenBucket(
            rate_bps=min(allocation.max_rate_bps, server.rate_bps), burst_bytes=allocation.max_burst_bytes
        )
        backlog = backlog_bound_bytes(flows, server) + service.largest_frame_bytes
        assert backlog <= service.capacity_bytes * (1 + 1e-9), name
        assert math.isclose(allocation.delay_ns, limits.delay_ns(allocation.max_burst_bytes))


@examples(8)
@given(mixes, st.randoms())
def test_the_order_and_the_names_of_the_kinds_do_not_matter(mix, random) -> None:
    shuffled = [kind.model_copy(update={"name": str(number)}) for number, kind in enumerate(mix.kinds)]
    random.shuffle(shuffled)
    other = mix.model_copy(update={"kinds": shuffled})
    assert other.digest == mix.digest

    def chosen(asked):
        try:
            return optimised_splits(LAB, scenario_of(mix), asked)
        except InputError as error:
            return str(error)

    assert chosen(other) == chosen(mix)


def filled(lab: Lab, mix: Mix) -> tuple[FluidNetwork, np.ndarray]:
    network = FluidNetwork(Allocator(lab, EVALUATION).frontiers(), streams_of(lab, mix), entries=10**6)
    return network, fill(network, np.ones(len(network.streams), dtype=bool))


def star() -> Lab:
    mac = "70:b3:d5:6c:00:01"
    return lab_of(
        {
            "name": "star",
            "title": "One switch",
            "switches": {"s1": {"datapath_id": f"00:00:{mac}", "profile": "zodiac-fx"}},
            "hosts": {f"H{n}": {"mac": f"02:00:00:00:00:0{n}", "ip": f"10.0.0.{n}/24"} for n in (1, 2)},
            "links": [{"a": "H1", "b": "s1:1"}, {"a": "H2", "b": "s1:2"}],
            "control_port": 0,
        }
    )


@pytest.mark.parametrize("rate_bps", [50e3, 875e3, 3e6])
def test_on_one_switch_rate_and_burst_run_out_together(rate_bps) -> None:
    """N b = B - l - N r T0, unless N r = R is reached first."""
    limits = Allocator(star(), EVALUATION).frontiers()["s1"]
    _, flows = filled(star(), Mix(kinds=[kind(rate_bps)]))
    by_buffer = limits.room_bytes / (306 + rate_bps * limits.latency_ns / 8e9)
    assert math.isclose(sum(flows), min(by_buffer, limits.max_rate_bps / rate_bps), abs_tol=0.07)


@examples(10)
@given(st.floats(5e4, 3e6), st.floats(0.2, 5), st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_no_other_splits_carry_more_in_the_same_proportions(rate_bps, weight, parts) -> None:
    """Flows go both ways, so each switch's delay makes the other's bursts grow."""
    between = [
        TrafficPair(source="H1", destination="H3"),
        TrafficPair(source="H4", destination="H2", weight=weight),
        TrafficPair(source="H1", destination="H2"),
    ]
    network, flows = filled(LAB, Mix(kinds=[kind(rate_bps, between=between)]))
    level = min(flows / network.weights)
    most = [limits.room_bytes for limits in network.frontiers]
    bursts = np.array([306 + part * (room - 306) for part, room in zip(parts, most, strict=True)])
    rates = network.rates_bps(bursts)
    unit = network.load(network.weights)
    asked = unit.burst_bytes + unit.growth @ network.delays_ns(bursts)
    other = min(np.min(rates / unit.rate_bps), np.min(bursts / asked))
    assert other <= level + 2 / 16, "of which one step is lost to whole steps, one to whole bytes"


def test_streams_that_share_nothing_exhausted_are_raised_further() -> None:
    between = [
        TrafficPair(source="h1a", destination="h1b", weight=5),
        TrafficPair(source="h3a", destination="h3b"),
    ]
    _, flows = filled(RING, Mix(kinds=[kind(875e3, between=between)]))
    assert math.isclose(flows[0], flows[1], abs_tol=0.1)


def test_a_deadline_is_kept_or_its_flows_are_given_up() -> None:
    ends = [TrafficPair(source="H1", destination="H3")]
    urgent = kind(875e3, deadline_ms=2.5, value=10, between=ends)
    both = Mix(kinds=[urgent, kind(875e3, between=ends)], requests=30)
    delays = [
        allocation.delay_ns
        for allocation in allocations_of(LAB, optimised_splits(LAB, EVALUATION, both), EVALUATION).values()
    ]
    assert sum(delays) <= 2.5e6
    hopeless = both.model_copy(update={"kinds": [kind(875e3, deadline_ms=0.9, between=ends), both.kinds[1]]})
    without = both.model_copy(update={"kinds": [both.kinds[1]]})
    assert worth(LAB, hopeless, optimised_splits(LAB, EVALUATION, hopeless)) > 0
    assert worth(LAB, without, optimised_splits(LAB, EVALUATION, without)) > 0


@pytest.mark.parametrize("name", VARIANTS)
def test_every_scheme_of_the_list_can_be_had(name) -> None:
    mix = Mix(kinds=[kind()], requests=20)
    lab = load_lab("chip-ring") if variant_named(name).scheme is SchemeName.PORTS else LAB
    admission = admission_of(lab, variant_named(name), EVALUATION, mix=mix)
    assert VARIANTS[admission.scheme].scheme is variant_named(name).scheme
    assert name.startswith(admission.scheme)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: variant_named("half-rate"), "scheme 'half-rate' is unknown"),
        (lambda: SchemeVariant(scheme=SchemeName.LOKO, allocation="half"), "allocation 'half' is unknown"),
        (lambda: SchemeVariant(scheme=SchemeName.SILO, allocation=OPTIMISED), "leave it out"),
        (
            lambda: SchemeVariant(scheme=SchemeName.PACKETS, allocation="full-rate"),
            "leave it out or give optimised",
        ),
        (lambda: admission_of(LAB, variant_named(OPTIMISED), EVALUATION), "give --mix FILE"),
        (lambda: streams_of(LAB, Mix(kinds=[kind(path_lengths=[PathLength(hops=4)])])), "4 hops apart"),
        (
            lambda: streams_of(ring_lab(Ring(switches=501, one_way=False)), Mix(kinds=[kind()])),
            "mix: flows between any of 501 hosts .*; say with `between`",
        ),
        (
            lambda: streams_of(LAB, Mix(kinds=[kind(between=[TrafficPair(source="H1", destination="H9")])])),
            "mix: lab 'two-switch' has no host 'H9'",
        ),
        (
            lambda: optimised_splits(LAB, EVALUATION, Mix(kinds=[kind(2e7)], requests=3)),
            "mix: no flow of it fits",
        ),
    ],
)
def test_wrong_input_is_one_line(call, says) -> None:
    with pytest.raises(InputError, match=says) as error:
        call()
    assert "\n" not in str(error.value)


FLOWS = [
    {
        "id": f"f{number}",
        "source": "H1",
        "destination": "H3",
        "udp_source": 5000 + number,
        "udp_destination": 6000 + number,
        "rate_bps": 750e3,
        "burst_bytes": 306,
        "frame_bytes": 306,
    }
    for number in range(12)
]


@pytest.fixture
def flows_path(tmp_path: Path) -> str:
    path = tmp_path / "flows.yml"
    path.write_text(json.dumps(FLOWS))
    return str(path)


def accepted(*arguments: str) -> int:
    result = CliRunner().invoke(app, ["plan", *arguments, "--json"])
    assert result.exit_code in {0, 1}, result.output
    return len(json.loads(result.stdout)["accepted"])


def test_loko_plan_takes_a_mix(flows_path: str, tmp_path: Path) -> None:
    mix = tmp_path / "mix.yml"
    between = [{"source": "H1", "destination": "H3"}]
    mix.write_text(
        json.dumps(
            {"kinds": [{"rate_bps": 750e3, "burst_bytes": 306, "frame_bytes": 306, "between": between}]}
        )
    )
    fixed = [accepted("two-switch", flows_path, "--allocation", name) for name in ALLOCATION_RULES]
    chosen = accepted("two-switch", flows_path, "--allocation", OPTIMISED, "--mix", str(mix))
    assert chosen > max(fixed)
    packets = ["--scheme", "packets", "--allocation", OPTIMISED, "--mix", str(mix)]
    assert accepted("two-switch", flows_path, *packets) >= accepted("two-switch", flows_path, *packets[:2])


def test_a_lab_may_say_how_it_is_allocated(flows_path: str, tmp_path: Path) -> None:
    values = yaml.safe_load((LABS / "two-switch" / "lab.yml").read_text())
    values["mix"] = yaml.safe_load((LABS / "two-switch" / "mix.yml").read_text())
    values["allocation"] = OPTIMISED
    path = tmp_path / "lab.yml"
    path.write_text(yaml.safe_dump(values))
    assert load_lab(path).mix == load_mix(LABS / "two-switch" / "mix.yml")
    result = CliRunner().invoke(app, ["plan", str(path), flows_path, "--json"])
    values = json.loads(result.stdout)
    assert {switch["allocation"] for switch in values["switches"].values()} == {OPTIMISED}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--allocation", OPTIMISED], "give --mix FILE, or `mix` in"),
        (["--mix", "mix.yml"], "--mix: is for --allocation optimised"),
        (["--allocation", OPTIMISED, "--mix", "none.yml"], "mix 'none.yml': no such file"),
        (["--scheme", "silo", "--allocation", OPTIMISED], "scheme silo: has no allocation"),
    ],
)
def test_wrong_options_are_one_line_and_status_2(flows_path: str, arguments, says) -> None:
    result = CliRunner().invoke(app, ["plan", "two-switch", flows_path, *arguments])
    assert result.exit_code == 2
    assert says in result.output
    assert result.output.count("\n") == 1


def test_a_wrong_mix_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mix.yml"
    for text, says in (
        ("kinds: []", "kinds"),
        ("kinds: [{rate_bps: 1, burst_bytes: 64, frame_bytes: 128}]", "allow a frame"),
        ("kinds: [{rate: 1}]", "did you mean 'rate_bps'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=says) as error:
            load_mix(path)
        assert "\n" not in str(error.value)


def test_a_sweep_takes_the_labs_mix() -> None:
    figure = experiments()["loko/fig17a"]
    lab = replace(LAB, mix=Mix(kinds=[kind(400e3)], requests=30))
    allocation = allocation_of(figure, lab, OPTIMISED)
    assert allocation.feasible
    assert allocation.max_rate_bps > 2.4e6
    service = allocation.service
    assert allocation.max_burst_bytes <= allocate(service, allocation.scheme).max_burst_bytes
    assert deterministic(LAB.switches["s1"].profile) == service.profile
