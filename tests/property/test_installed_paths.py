"""The path that admission returned is installed and the frames take it, whatever installs it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from gate_examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from loko.admission import Admission, Admitted, Refusal
from loko.admission.planning import Plan, plan, scenario_of
from loko.admission.schemes import VARIANTS, SchemeName, admission_of
from loko.control.__main__ import admitted_tables
from loko.control.entries import FlowEntry, switch_entries
from loko.document import InputError
from loko.switch_model.control_traffic import HEARTBEAT
from loko.switch_model.flow import Flow
from loko.switch_model.mix import FlowKind, Mix
from loko.topology.lab import Endpoint, Lab, ring_lab
from loko.topology.network import Hop, dump_paths, load_paths, on_shortest_paths, shortest_path
from loko.topology.requests import load_flows
from loko.topology.ring import Ring
from loko_testbed.live.messages import BuildRequest
from loko_testbed.live.runner import LiveRunner
from loko_testbed.live.session import Session
from loko_testbed.simulation.options import Builder
from loko_testbed.simulation.senders import SenderSettings
from loko_testbed.simulation.virtual import PoweredLab, VirtualRunner, lab_network
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import DRAIN_NS, judge_delivery, timed_senders
from loko_testbed.simulation.worst_case.random_cases import random_lab
from loko_testbed.simulation.worst_case.release import LEAD_NS, aimed_pattern, refill_ns, release_instants
from loko_testbed.simulation.worst_case.schemes import GUARANTEED

FRAME_BYTES = 306
SCHEME = "packet-granular"
SHAPES = ("ring", "cycles")
FOR_BOARDS = sorted(name for name, choice in VARIANTS.items() if choice.scheme is not SchemeName.PORTS)
DETOURING = [name for name in FOR_BOARDS if VARIANTS[name].scheme is not SchemeName.QJUMP]
"""Schemes in which one path may have room while another has none. QJump looks at the sending host only."""
Tables = Mapping[str, Sequence[FlowEntry]]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A lab on which some flows were admitted."""

    lab: Lab
    scheme: str
    entries: int
    result: Plan

    @property
    def admitted(self) -> tuple[Admitted, ...]:
        """The flows that fit."""
        return self.result.accepted

    @property
    def detours(self) -> int:
        """The number of these flows that do not take the shortest path."""
        return sum(admitted.path != shortest(self.lab, admitted.flow) for admitted in self.admitted)


def shortest(lab: Lab, flow: Flow) -> tuple[Hop, ...]:
    return shortest_path(lab, flow.source, flow.destination)


def a_flow(number: int, source: str, destination: str, rate_bps: float = 20e3) -> Flow:
    return Flow(
        id=f"f{number}",
        source=source,
        destination=destination,
        udp_source=1000 + number,
        udp_destination=2000 + number,
        rate_bps=rate_bps,
        burst_bytes=float(FRAME_BYTES),
        frame_bytes=FRAME_BYTES,
    )


def planned(seed: int, scheme: str, shape: str) -> Planned:
    """Plan requests that use up a few switches, so that later ones take detours."""
    rng = Random(f"{seed} {shape}")
    lab = random_lab(rng, shape, most_switches=7)
    mix = Mix(kinds=[FlowKind(rate_bps=2e4, burst_bytes=FRAME_BYTES, frame_bytes=FRAME_BYTES)], requests=40)
    lab = replace(lab, mix=mix)
    entries = rng.choice((8, 17))
    hosts = list(lab.hosts)
    busy = rng.sample(hosts, min(len(hosts), 3))
    flows = [
        a_flow(number, *rng.sample(busy if rng.random() < 0.6 else hosts, 2), rate_bps=rng.choice((1e4, 3e5)))
        for number in range(40)
    ]
    return requested(lab, scheme, flows, entries)


def requested(lab: Lab, scheme: str, flows: Sequence[Flow], entries: int) -> Planned:
    """Plan the flows. A scheme that does not count entries gets tables that hold what it accepts."""
    result = plan(lab, flows, admission(lab, scheme, flows, entries))
    most = Counter(hop.switch for accepted in result.accepted for hop in accepted.path)
    return Planned(lab=lab, scheme=scheme, entries=max(entries, *most.values(), 0), result=result)


def admission(lab: Lab, scheme: str, flows: Sequence[Flow], entries: int) -> Admission:
    """Reserve what boards do by themselves, if the scheme can. Otherwise it would promise nothing."""
    choice = VARIANTS[scheme]
    return admission_of(lab, choice, scenario_of(flows, entries=entries), traffic=HEARTBEAT)


def of_the_controller(planned: Planned) -> Tables:
    """Return the tables of `python -m loko.control`, told the admitted paths as in a live run."""
    paths = {admitted.flow.id: admitted.path for admitted in planned.admitted}
    return admitted_tables(
        planned.lab, [admitted.flow for admitted in planned.admitted], planned.scheme, planned.entries, paths
    ).entries


def of_the_evaluation(planned: Planned) -> Tables:
    """Return the tables of the boards in virtual time."""
    return switch_entries(planned.lab, planned.admitted, entries=planned.entries)


def on_the_shortest_paths(planned: Planned) -> Tables:
    """Make a mistake on purpose: search for the shortest paths again."""
    flows = [admitted.flow for admitted in planned.admitted]
    most = Counter(hop.switch for flow in on_shortest_paths(planned.lab, flows) for hop in flow.path)
    entries = max(planned.entries, *most.values())
    return switch_entries(planned.lab, on_shortest_paths(planned.lab, flows), entries=entries)


def way(lab: Lab, tables: Tables, flow: Flow) -> tuple[Hop, ...]:
    """Return the hops that a frame takes with these tables."""
    far = dict(lab.cables())
    at = far[Endpoint(node=flow.source, port=1)]
    hops: list[Hop] = []
    while at.node in lab.switches and len(hops) <= len(lab.switches):
        ports = [entry.output_port for entry in tables[at.node] if entry.match.tp_src == flow.udp_source]
        if len(ports) != 1:
            break
        hops.append(Hop(switch=at.node, output_port=ports[0]))
        at = far[Endpoint(node=at.node, port=ports[0])]
    return tuple(hops)


def misplaced(planned: Planned, tables: Tables) -> list[str]:
    """Return flows whose frames would leave the admitted path, or that have entries off it."""
    own = {name: {entry.match.tp_src for entry in table} for name, table in tables.items()}
    return [
        admitted.flow.id
        for admitted in planned.admitted
        if way(planned.lab, tables, admitted.flow) != admitted.path
        or {name for name in own if admitted.flow.udp_source in own[name]}
        != {hop.switch for hop in admitted.path}
    ]


def crossings(planned: Planned, sent: Mapping[int, int]) -> dict[str, int]:
    """Return how many frames each switch should see, given the number of frames sent of each flow."""
    seen = dict.fromkeys(planned.lab.switches, 0)
    for number, admitted in enumerate(planned.admitted):
        for hop in admitted.path:
            seen[hop.switch] += sent[number]
    return seen


@dataclass(frozen=True, kw_only=True)
class Carried:
    """The outcome of the worst conforming traffic."""

    received: dict[str, int]
    expected: dict[str, int]
    """Frames by switch."""
    broken: tuple[object, ...]


def carried(planned: Planned, tables: Tables, seed: int) -> Carried:
    """Send bursts of all flows that meet where paths join, again as soon as all buckets are full."""
    case = AdmittedSet(
        lab=planned.lab, scheme=planned.scheme, admitted=planned.admitted, entries=planned.entries
    )
    rng = np.random.default_rng(seed)
    bursts = [aimed_pattern(case, rng) for _ in range(6)]
    period_ns = round(refill_ns(case)) + 20_000_000
    at_ns = [LEAD_NS + place * period_ns for place in range(len(bursts))]
    powered = PoweredLab(planned.lab, lab_network(planned.lab, tables, seed=seed), seed)
    traffic = timed_senders(case, release_instants(case, at_ns, bursts))
    records = powered.run(traffic, duration_ns=at_ns[-1] + period_ns, drain_ns=DRAIN_NS)
    sent = {number: seen["sent"] for number, seen in records.flows.items()}
    return Carried(
        received={name: board["received"] for name, board in records.boards.items()},
        expected=crossings(planned, sent),
        broken=judge_delivery(case, records).broken,
    )


@pytest.mark.parametrize("install", [of_the_controller, of_the_evaluation])
@examples(12)
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(FOR_BOARDS), shape=st.sampled_from(SHAPES))
def test_admitted_flows_take_their_paths_and_keep_their_guarantees(
    install: Callable[[Planned], Tables], seed: int, scheme: str, shape: str
) -> None:
    try:
        drawn = planned(seed, scheme, shape)
    except InputError:
        return  # for example, a mix of which nothing fits
    if not drawn.admitted:
        return
    tables = install(drawn)
    assert misplaced(drawn, tables) == []
    seen = carried(drawn, tables, seed)
    if scheme in GUARANTEED:
        assert seen.received == seen.expected
        assert seen.broken == ()


@examples(12)
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(DETOURING), shape=st.sampled_from(SHAPES))
def test_the_controller_installs_the_paths_that_it_decides_on(seed: int, scheme: str, shape: str) -> None:
    """Told no paths, the controller reserves for its own traffic, plans, and installs that plan."""
    choice = VARIANTS[scheme]
    try:
        drawn = planned(seed, scheme, shape)
        flows = [admitted.flow for admitted in drawn.admitted]
        scenario = scenario_of(flows, entries=drawn.entries)
        own = admission_of(drawn.lab, choice, scenario, traffic=HEARTBEAT)
    except InputError:
        return  # for example, a mix of which nothing fits
    result = plan(drawn.lab, flows, own)
    assume(not result.refused)
    decided = replace(drawn, result=result)
    assert misplaced(decided, admitted_tables(decided.lab, flows, scheme, decided.entries).entries) == []


@pytest.mark.parametrize("scheme", sorted(DETOURING))
def test_paths_that_are_looked_for_again_are_found_out(scheme: str) -> None:
    """Shows that the test above can fail for each of these schemes: somewhere a flow takes a detour."""
    plans = (planned(seed, scheme, shape) for seed in range(100) for shape in SHAPES)
    detouring = next(plan for plan in plans if plan.detours)
    assert not misplaced(detouring, of_the_evaluation(detouring))
    assert not misplaced(detouring, of_the_controller(detouring))
    tables = on_the_shortest_paths(detouring)
    assert len(misplaced(detouring, tables)) == detouring.detours
    seen = carried(detouring, tables, seed=1)
    assert seen.received != seen.expected


def around_a_full_switch() -> Planned:
    """Plan a two-way ring of five. Flows of h2 use up s2 but not s1 or s3; the last goes from h1 to h3."""
    lab = ring_lab(Ring(switches=5, one_way=False))
    flows = [a_flow(number, "h2", ("h1", "h3")[number % 2]) for number in range(17)]
    last = a_flow(len(flows), "h1", "h3")
    filled = admission(lab, SCHEME, flows, 17)
    fitting = [flow for flow in flows if isinstance(filled.request(flow, shortest(lab, flow)), Admitted)]
    return requested(lab, SCHEME, [*fitting, last], 17)


def test_a_flow_that_was_admitted_the_other_way_round_is_installed_the_other_way_round() -> None:
    example = around_a_full_switch()
    *others, last = example.admitted
    assert not example.result.refused
    assert [hop.switch for hop in last.path] == ["s1", "s5", "s4", "s3"]
    # On the shortest path s2 would carry one flow more than fits.
    filled = admission(example.lab, SCHEME, [last.flow], 17)
    assert all(isinstance(filled.request(other.flow, other.path), Admitted) for other in others)
    refusal = filled.request(last.flow, shortest(example.lab, last.flow))
    assert isinstance(refusal, Refusal)
    assert refusal.switch == "s2"
    for install in (of_the_controller, of_the_evaluation):
        tables = install(example)
        flows_of_s2 = [entry for entry in tables["s2"] if entry.match.tp_src != 9]
        assert len(flows_of_s2) == len(others)
        seen = carried(example, tables, seed=1)
        assert seen.received == seen.expected
        assert seen.received["s5"] > 0
        assert seen.broken == ()


def test_the_runner_of_figures_sends_frames_along_the_admitted_path() -> None:
    example = around_a_full_switch()
    senders = [
        SenderSettings(queue_frames=10).conforming(number, admitted.flow)
        for number, admitted in enumerate(example.admitted)
    ]
    with VirtualRunner(example.lab, example.admitted, entries=example.entries) as runner:
        records = runner.run(senders, seconds=2, seed=1)
    assert (records.received_ns >= 0).all()
    sent = Counter(records.flow.tolist())
    assert {name: board["received"] for name, board in records.boards.items()} == crossings(example, sent)


def test_a_live_run_tells_its_controller_what_was_admitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the runner of a figure to the options of `python -m loko.control`, without starting a lab."""
    example = around_a_full_switch()
    built: list[BuildRequest] = []
    started: list[list[str]] = []

    class StartedError(Exception):
        """Raised instead of starting anything."""

    def start(_lab: Lab, request: BuildRequest, _builder: Builder) -> None:
        built.append(request)
        raise StartedError

    def daemon(_name: str, words: list[str], **_: object) -> None:
        started.append(words)
        raise StartedError

    monkeypatch.setattr("loko_testbed.live.runner.start", start)
    monkeypatch.setattr("loko_testbed.live.session.Daemon", daemon)
    with pytest.raises(StartedError):
        LiveRunner(
            example.lab, example.admitted, allocation=example.scheme, entries=example.entries
        ).__enter__()
    session = Session.__new__(Session)
    session.lab, session._folder = example.lab, tmp_path
    with pytest.raises(StartedError):
        session._start_controller(built[0], [])
    words = [str(word) for word in started[0]]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    decided = load_paths(Path(options["--paths"]))
    flows = load_flows(options["--flows"])
    tables = admitted_tables(example.lab, flows, options["--allocation"], int(options["--entries"]), decided)
    assert misplaced(example, tables.entries) == []
    assert decided == {admitted.flow.id: admitted.path for admitted in example.admitted}


def test_paths_survive_a_file(tmp_path: Path) -> None:
    paths = {admitted.flow.id: admitted.path for admitted in around_a_full_switch().admitted}
    file = tmp_path / "paths.json"
    file.write_text(json.dumps(dump_paths(paths)))
    assert load_paths(file) == paths


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "no such file"),
        ("[]", "must be keys with values"),
        ('{"f0": [{"switch": "s1"}]}', "output_port: is missing"),
        ('{"f0": [{"switch": "s1", "port": 3}]}', "unknown key 'port'"),
    ],
)
def test_wrong_paths_are_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "paths.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=says) as error:
        load_paths(file)
    assert "\n" not in str(error.value)


def test_a_path_that_does_not_fit_its_flow_is_wrong_input() -> None:
    example = around_a_full_switch()
    first, last = example.admitted[0], example.admitted[-1]
    with pytest.raises(InputError, match=r"flow 'f0': path \[.*\] does not lead from h2 to h1"):
        admitted_tables(example.lab, [first.flow], example.scheme, 17, {first.flow.id: last.path})
