"""A request that follows the advice of a refusal is granted; a bit more is not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from loko.admission import Admission, Admitted, Refusal
from loko.admission.routing import admit, route
from loko.admission.schemes import VARIANTS, SchemeName, admission_of
from loko.document import InputError
from loko.switch_model.flow import Flow, dump_flows
from loko.switch_model.mix import FlowKind, Mix
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import Lab, load_lab, ring_lab
from loko.topology.network import Hop, shortest_path
from loko.topology.ring import Ring
from loko.units import rate_bps, time_ns
from loko_testbed.cli.main import app
from loko_testbed.simulation.worst_case.random_cases import random_lab

SENTENCE = re.compile(
    r"a (?:rate of at most (?P<rate>[\d.]+ [kMG]?bit/s)|burst of at most (?P<burst>\d+) bytes|"
    r"deadline of at least (?P<deadline>[\d.]+ [num]?s))"
)
SIZES = (64, 306)
RING = ring_lab(Ring(switches=5, one_way=False))
TWO = load_lab("two-switch")
LABS = {"two-switch": TWO, "ring": RING}
Request = tuple[Flow, float | None]
"""A flow and its deadline in ns."""


def a_flow(number: int, source: str, destination: str, **values: float) -> Flow:
    fields = {"rate_bps": 1e5, "burst_bytes": 306.0, "frame_bytes": 306, **values}
    return Flow(
        id=f"f{number}",
        source=source,
        destination=destination,
        udp_source=1000 + number,
        udp_destination=2000 + number,
        **fields,  # type: ignore[arg-type]
    )


def empty(lab: Lab, scheme: str, entries: int = 17, sizes: Sequence[int] = SIZES) -> Admission:
    choice = VARIANTS[scheme]
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=tuple(sizes))
    kinds = [FlowKind(rate_bps=5e4, burst_bytes=size, frame_bytes=size) for size in sizes]
    reserved = {} if choice.reserves_control else None
    return admission_of(lab, choice, scenario, mix=Mix(kinds=kinds, requests=30), traffic=reserved)


def drawn_flow(rng: Random, number: int, hosts: Sequence[str]) -> Flow:
    frame_bytes = rng.choice(SIZES)
    rate_bps = rng.choice((rng.uniform(0.3, 2e3), rng.uniform(1e4, 1e6), rng.uniform(1e5, 3e7)))
    return a_flow(
        number,
        *rng.sample(list(hosts), 2),
        rate_bps=rate_bps,
        burst_bytes=frame_bytes * rng.choice((1.0, 1.0, rng.uniform(1, 4), rng.uniform(1, 40))),
        frame_bytes=frame_bytes,
    )


def follow(sentence: str, request: Request) -> Request:
    """Change the request exactly as the sentence says."""
    flow, deadline_ns = request
    rest = SENTENCE.sub("", sentence).strip()
    assert rest in {"", "and"}, f"more is said than a request can follow: {sentence!r}"
    for said in SENTENCE.finditer(sentence):
        if said["rate"]:
            flow = flow._replace(rate_bps=rate_bps(said["rate"]))
        if said["burst"]:
            flow = flow._replace(burst_bytes=float(said["burst"]))
        if said["deadline"]:
            deadline_ns = time_ns(said["deadline"])
    return flow, deadline_ns


def bit_more(advised: Request, asked: Request) -> list[Request]:
    """Return requests that exceed the advice by one unit, but not the original request."""
    (flow, deadline_ns), (whole, first_ns) = advised, asked
    larger: list[Request] = []
    if flow.rate_bps + 1 <= whole.rate_bps:
        larger.append((flow._replace(rate_bps=flow.rate_bps + 1), deadline_ns))
    if flow.burst_bytes + 1 <= whole.burst_bytes and flow.burst_bytes != whole.frame_bytes:
        larger.append((flow._replace(burst_bytes=flow.burst_bytes + 1), deadline_ns))
    if deadline_ns is not None and deadline_ns != first_ns:
        larger.append((flow, deadline_ns - 1))
    return larger


def asked_for(lab: Lab, admission: Admission, request: Request, path: Sequence[Hop] | None):
    return admit(lab, admission, *request, path)


@examples(70)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(sorted(VARIANTS)),
    where=st.sampled_from([*sorted(LABS), "cycles"]),
    entries=st.sampled_from((4, 17)),
    explicit=st.booleans(),
)
def test_advice_that_is_followed_is_granted(
    seed: int, scheme: str, where: str, entries: int, explicit: bool
) -> None:
    rng = Random(seed)
    lab = LABS.get(where) or random_lab(rng, where, most_switches=5)
    try:
        admission = empty(lab, scheme, entries)
    except InputError:
        return  # for example, a mix of which nothing fits
    hosts = list(lab.hosts)
    for number in range(rng.choice((0, 5, 40))):
        admission.request(drawn_flow(rng, number, hosts))
    for number in range(100, 106):
        flow = drawn_flow(rng, number, hosts)
        request = flow, rng.choice((None, rng.uniform(1e5, 1e7)))
        path = shortest_path(lab, flow.source, flow.destination) if explicit else None
        before = used(lab, admission)
        answer = asked_for(lab, admission, request, path)
        if isinstance(answer, Admitted):
            continue
        if not (suggestion := answer.suggestion_text):
            assert nothing_smaller_fits(lab, admission, request, path)
            continue
        advised = follow(suggestion, request)
        assert answer.as_values()["would_fit"] == {
            name: value
            for name, value in {**advised[0]._asdict(), "deadline_ns": advised[1]}.items()
            if value != {**flow._asdict(), "deadline_ns": request[1]}[name]
        }
        for more in bit_more(advised, request):
            again = asked_for(lab, admission, more, path)
            assert isinstance(again, Refusal), (suggestion, more)
        assert used(lab, admission) == before, "asking admits nothing"
        granted = asked_for(lab, admission, advised, path)
        assert isinstance(granted, Admitted), (suggestion, str(granted))


@examples(70)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(sorted(VARIANTS)),
    burst=st.sampled_from((1.0, 50.0, 1e3, 1e12)),
)
def test_a_refusal_counts_what_is_used_and_the_sum_is_too_much(seed: int, scheme: str, burst: float) -> None:
    rng = Random(seed)
    lab = load_lab("chip-ring") if VARIANTS[scheme].scheme is SchemeName.PORTS else rng.choice((TWO, RING))
    try:
        admission = empty(lab, scheme)
    except InputError:
        return
    hosts = list(lab.hosts)
    for number in range(rng.choice((0, 5, 40))):
        admission.request(drawn_flow(rng, number, hosts))
    for number in range(100, 110):
        flow = drawn_flow(rng, number, hosts)
        answer = admission.check(flow._replace(burst_bytes=flow.burst_bytes * rng.choice((1.0, burst))))
        if isinstance(answer, Admitted):
            continue
        assert answer.used + answer.requested > answer.allowed, str(answer)
        assert all(map(math.isfinite, (answer.used, answer.requested))), str(answer)
        for share in admission.usage(answer.switch).shares if answer.switch in lab.switches else ():
            if (share.quantity, share.unit) == (answer.quantity, answer.unit):
                assert answer.used == pytest.approx(share.used), str(answer)


def used(lab: Lab, admission: Admission) -> list[tuple[str, str, float]]:
    return [
        (name, share.quantity, share.used)
        for name in lab.switches
        for share in admission.usage(name).shares
        if share.used
    ]


def nothing_smaller_fits(lab: Lab, admission: Admission, request: Request, path) -> bool:
    flow, deadline_ns = request
    least = flow._replace(rate_bps=min(1.0, flow.rate_bps), burst_bytes=float(flow.frame_bytes))
    return isinstance(asked_for(lab, admission, (least, deadline_ns), path), Refusal)


def refused(admission: Admission, flow: Flow) -> Refusal:
    answer = admission.check(flow)
    assert isinstance(answer, Refusal)
    return answer


PROMISING = sorted(set(VARIANTS) - {name for name in VARIANTS if name.startswith("qjump")})


@pytest.mark.parametrize("scheme", sorted(VARIANTS))
def test_every_scheme_advises_a_rate_and_a_burst(scheme: str) -> None:
    has_ports = VARIANTS[scheme].scheme is SchemeName.PORTS
    admission = empty(load_lab("chip-ring") if has_ports else TWO, scheme)
    asked = [({"rate_bps": 5e9}, "rate_bps"), ({"burst_bytes": 306.0 * 500}, "burst_bytes")]
    if has_ports:  # a lone flow arrives no faster than a port sends, so its burst waits nowhere
        asked.pop()
    for values, name in asked:
        flow = a_flow(1, "H1", "H3", **values)
        change = refused(admission, flow).suggestion
        if scheme.startswith("qjump") and name == "burst_bytes":
            assert change.burst_bytes == 306  # one packet an epoch
        assert list(change.as_values()) == [name]
        assert isinstance(admission.check(follow(str(change), (flow, None))[0]), Admitted)


def test_a_full_table_has_no_smaller_request_that_fits() -> None:
    admission = empty(TWO, "fifth-rate", entries=4)
    *flows, last = (
        a_flow(number, "H1", "H3", rate_bps=1e3, burst_bytes=64.0, frame_bytes=64) for number in range(5)
    )
    assert all(isinstance(admission.request(flow), Admitted) for flow in flows)
    refusal = refused(admission, last)
    assert refusal.quantity == "entries"
    assert refusal.suggestion_text == ""
    assert refusal.as_values()["would_fit"] == {}


def test_advice_of_packets_for_a_delay_is_a_burst_that_is_in_time() -> None:
    admission = empty(TWO, "packet-granular", sizes=(306,))
    flow = a_flow(1, "H1", "H3", burst_bytes=306.0 * 12)
    refusal = refused(admission, flow)
    assert refusal.quantity == "delay"
    assert refusal.suggestion.burst_bytes is not None
    assert refusal.suggestion.burst_bytes < 306 * 12


def test_burst_and_rate_are_both_lowered_if_neither_alone_will_do() -> None:
    admission = empty(TWO, "full-rate", sizes=(306,))
    flow = a_flow(1, "H1", "H3", rate_bps=5e8, burst_bytes=306.0 * 100)
    refusal = refused(admission, flow)
    assert set(refusal.suggestion.as_values()) == {"rate_bps", "burst_bytes"}
    assert isinstance(admission.check(follow(refusal.suggestion_text, (flow, None))[0]), Admitted)


def test_a_deadline_is_rounded_to_what_is_kept() -> None:
    admission = empty(RING, "full-rate")
    best = route(RING, admission, a_flow(1, "h1", "h3"))
    assert isinstance(best, Admitted)
    assert best.guarantee_ns != round(best.guarantee_ns), "else nothing would be rounded"
    late = route(RING, admission, a_flow(1, "h1", "h3"), best.guarantee_ns - 0.4)
    assert isinstance(late, Refusal)
    assert late.suggestion.deadline_ns == math.ceil(best.guarantee_ns)
    assert str(late).endswith("; none of 2 paths fits")


@pytest.mark.parametrize("explicit", [False, True])
def test_a_deadline_is_advised_only_while_there_is_room(explicit: bool) -> None:
    admission = empty(TWO, "fifth-rate")
    flow = a_flow(1, "H1", "H3")
    path = shortest_path(TWO, "H1", "H3") if explicit else None
    late = admit(TWO, admission, flow, 1e6, path)
    assert isinstance(late, Refusal)
    assert list(late.suggestion.as_values()) == ["deadline_ns"]
    number = 2
    while isinstance(admission.request(a_flow(number, "H1", "H3")), Admitted):
        number += 1
    assert isinstance(admit(TWO, admission, flow, 1e9, path), Refusal), "there is no room for any deadline"
    assert late.suggestion_text == ""


def test_advice_is_found_only_when_it_is_read() -> None:
    admission = empty(RING, "packet-granular", sizes=(306,))
    asked: list[Flow] = []

    class Counting:
        scheme, admitted = admission.scheme, admission.admitted

        def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
            asked.append(flow)
            return admission.check(flow, path)

        def __getattr__(self, name: str):
            return getattr(admission, name)

    refusal = route(RING, Counting(), a_flow(1, "h1", "h3", rate_bps=5e8))  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal)
    decided = len(asked)
    assert decided <= 3
    assert refusal.suggestion_text
    assert decided < len(asked) < 60


@pytest.mark.parametrize("scheme", ["full-rate", "packet-granular"])
@pytest.mark.parametrize("explicit", [False, True])
def test_waiting_as_long_as_advised_is_enough(scheme: str, explicit: bool) -> None:
    admission = empty(TWO, scheme, sizes=(306,))
    path = shortest_path(TWO, "H1", "H3") if explicit else None
    taken = 0
    while isinstance(admission.request(a_flow(taken, "H1", "H3", rate_bps=1e3)), Admitted):
        taken += 1
    now_ns = 1_000_000_000
    for number in range(taken):
        admission.release(f"f{number}", now_ns=now_ns)
    request = a_flow(100, "H1", "H3", rate_bps=1e3)
    refusal = admit(TWO, admission, request, path=path)
    assert isinstance(refusal, Refusal)
    said = re.match(r"ask again in (\d+) ms", refusal.suggestion_text)
    assert said is not None
    assert refusal.as_values()["would_fit"] == {}
    hopeless = admit(TWO, admission, request, 1.0, path)
    assert isinstance(hopeless, Refusal)
    assert "ask again" not in hopeless.suggestion_text, "to wait does not help with a deadline"
    kept = admit(TWO, admission, request, 100e6, path)
    assert isinstance(kept, Refusal)
    assert kept.suggestion_text == refusal.suggestion_text, "the path keeps this one anyway"
    admission.advance(now_ns + int(said[1]) * 1_000_000)
    assert isinstance(admit(TWO, admission, request, path=path), Admitted)


def test_advice_looks_at_all_paths() -> None:
    """The way round has more room than the shortest path."""
    admission = empty(RING, "full-rate")
    for number in range(3):
        admission.request(a_flow(number, "h2", "h3", rate_bps=1e6, burst_bytes=64.0, frame_bytes=64))
    flow = a_flow(9, "h1", "h4", rate_bps=5e8, burst_bytes=64.0, frame_bytes=64)
    on_path = refused(admission, flow)
    routed = route(RING, admission, flow)
    assert isinstance(routed, Refusal)
    assert on_path.suggestion.rate_bps is not None
    assert routed.suggestion.rate_bps is not None
    assert routed.suggestion.rate_bps >= on_path.suggestion.rate_bps


def test_numbers_of_a_refusal_are_never_what_would_fit() -> None:
    admission = empty(TWO, "fifth-rate")
    allowed = admission.usage("s1").share("rate").allowed
    text = str(refused(admission, a_flow(1, "H1", "H3", rate_bps=math.ceil(allowed))))
    used, requested, most = map(Decimal, re.findall(r"([\d.]+) (?:used|requested|[kM]?bit/s allowed)", text))
    assert used + requested > most


def test_the_command_line_says_if_nothing_smaller_fits(tmp_path: Path) -> None:
    flows = [a_flow(number, "H1", "H3", rate_bps=1e3) for number in range(12)]
    file = tmp_path / "flows.json"
    file.write_text(json.dumps(dump_flows(flows)))
    result = CliRunner().invoke(app, ["plan", "two-switch", str(file)])
    assert "; would fit: no smaller rate or burst beside the flows that are there" in result.output


@pytest.mark.parametrize("scheme", ["loko", "packets", "silo", "qjump"])
def test_what_the_command_line_advises_is_accepted(scheme: str, tmp_path: Path) -> None:
    flows = [a_flow(1, "H1", "H3", rate_bps=8e5), a_flow(2, "H2", "H4", rate_bps=4e8)]
    file = tmp_path / "flows.json"

    def planned():
        file.write_text(json.dumps(dump_flows(flows)))
        words = ["plan", "two-switch", str(file), "--scheme", scheme]
        return CliRunner().invoke(app, words, env={"COLUMNS": "200"})

    result = planned()
    assert result.exit_code == 1
    for line in [line for line in result.output.splitlines() if line.startswith("refused: ")]:
        said = re.fullmatch(r"refused: (\w+): .*; would fit: (.*)", line)
        assert said is not None
        place = next(place for place, flow in enumerate(flows) if flow.id == said[1])
        flows[place], _ = follow(said[2], (flows[place], None))
    assert planned().exit_code == 0


def planned(folder: Path, requests: Sequence[Request], words: Sequence[str]):
    """Run `loko plan` on these requests, in their order."""
    file = folder / "asked.json"
    documents = [
        {**flow._asdict(), **({} if deadline_ns is None else {"deadline_ns": deadline_ns})}
        for flow, deadline_ns in requests
    ]
    file.write_text(json.dumps(documents))
    return CliRunner().invoke(app, ["plan", words[0], str(file), *words[1:]])


@examples(32)
@given(
    seed=st.integers(0, 10**6),
    scheme=st.sampled_from(("loko", "packets", "silo", "qjump")),
    where=st.sampled_from(("two-switch", "ring/five.yml")),
    largest=st.booleans(),
)
def test_no_advice_of_the_command_line_is_impossible_to_take(
    tmp_path_factory: pytest.TempPathFactory, seed: int, scheme: str, where: str, largest: bool
) -> None:
    """Advice changes one flow only. With that change it fits beside all flows that fitted."""
    rng = Random(seed)
    lab = load_lab(where)
    folder = tmp_path_factory.mktemp("plan")
    requests: dict[str, Request] = {}
    for number in range(rng.choice((2, 6, 9))):
        flow = drawn_flow(rng, number, list(lab.hosts))
        requests[flow.id] = flow, rng.choice((None, rng.uniform(1e5, 2e7)))
    words = (where, "--scheme", scheme, *(["--largest"] if largest else []))
    result = planned(folder, list(requests.values()), words)
    assert result.exit_code in {0, 1}, result.output
    lines = [line for line in result.output.splitlines() if line.startswith("refused: ")]
    refused_ids = [line.split(": ")[1] for line in lines]
    fitting = [flow_id for flow_id in requests if flow_id not in refused_ids]
    for flow_id, line in zip(refused_ids, lines, strict=True):
        _, said = line.split("; would fit: ")
        if said == "no smaller rate or burst beside the flows that are there":
            continue
        advised = follow(said, requests[flow_id])
        assert advised != requests[flow_id]
        # The others stay in the file, because the switches are planned for their frames, too.
        rest = [requests[other] for other in refused_ids if other != flow_id]
        asked = [*(requests[other] for other in fitting), advised, *rest]
        again = json.loads(planned(folder, asked, (*words, "--json")).stdout)
        row = {row["flow"] for row in again["accepted"]}
        if largest:  # perhaps other flows, but more of them
            assert len(row) > len(fitting), said
        else:
            assert row >= {*fitting, flow_id}, said
