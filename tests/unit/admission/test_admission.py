"""Admission (limits, atomicity, release, lasting guarantees) and plans."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.admission import ROUNDING, Admitted, LokoAdmission, Refusal
from loko.admission.planning import plan, scenario_of
from loko.document import InputError
from loko.exact_sum import ExactSum
from loko.switch_model.allocation import ALLOCATION_RULES, FIFTH_RATE, FULL_RATE
from loko.switch_model.calculus import NOTHING
from loko.switch_model.control_traffic import AS_PRINTED
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION, Scenario
from loko.switch_model.split import echo_traffic, split
from loko.topology.lab import load_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, shortest_path
from loko_testbed.simulation.traffic import flow_of

LAB = load_lab("two-switch").as_printed()
PAIRS = (("H1", "H3"), ("H3", "H1"), ("H2", "H4"), ("H4", "H2"))
LIMITS = {
    name: allocations_of(LAB, scheme, EVALUATION, AS_PRINTED) for name, scheme in ALLOCATION_RULES.items()
}


def flow(number=0, pair=PAIRS[0], rate_bps=100e3, burst_bytes=306.0, frame_bytes=306) -> Flow:
    return flow_of(
        number, *pair, rate_bps=rate_bps, burst_bytes=burst_bytes, frame_bytes=frame_bytes, called="f"
    )


def control(scheme="fifth-rate") -> LokoAdmission:
    return LokoAdmission(LAB, LIMITS[scheme])


def evaluation_flows(scheme, ratio) -> list[Flow]:
    """Return the flows of figures 17 and 18, with exactly the rates and bursts of equation 8."""
    shares = split(LIMITS[scheme]["s1"], ratio=ratio)
    senders = {"H1": shares.first, "H3": shares.first, "H2": shares.second, "H4": shares.second}
    return [
        flow(number, pair, senders[pair[0]].rate_bps, senders[pair[0]].burst_bytes)
        for number, pair in enumerate(PAIRS)
        if senders[pair[0]] != NOTHING
    ]


@pytest.mark.parametrize(
    ("scheme", "ratio", "guarantee_ms"), [(FIFTH_RATE, 2, 4.13), (FULL_RATE, 0, 3.72)], ids=["fig17", "fig18"]
)
def test_the_papers_flows_just_fit(scheme, ratio, guarantee_ms) -> None:
    flows = evaluation_flows(scheme.name, ratio)
    result = plan(LAB, flows, control(scheme.name))
    assert not result.refused
    assert {round(admitted.guarantee_ns / 1e6, 2) for admitted in result.accepted} == {guarantee_ms}
    one_more = [*flows, flow(9, rate_bps=1e3)]
    refused = plan(LAB, one_more, control(scheme.name)).refused
    assert [refusal.flow.id for refusal in refused] == ["f9"]


def test_refusal_names_switch_quantity_and_numbers() -> None:
    admission = control()
    admission.request(flow(1, rate_bps=2e6))
    refusal = admission.request(flow(2, rate_bps=1e6))
    assert isinstance(refusal, Refusal)
    assert (refusal.switch, refusal.quantity, refusal.unit) == ("s1", "rate", "bit/s")
    assert (refusal.used, refusal.requested) == (2e6, 1e6)
    assert refusal.allowed == pytest.approx(2.37e6, rel=1e-3)
    assert str(refusal).startswith("f2: rate at s1: 2 used + 1 requested > 2.3697")


def test_burst_grows_by_r_d_at_every_hop() -> None:
    admission = control("full-rate")
    admitted = admission.request(flow(rate_bps=1e6))
    assert isinstance(admitted, Admitted)
    first, second = admitted.hops
    assert (first.switch, second.switch) == ("s1", "s2")
    delay_ns = LIMITS["full-rate"]["s1"].delay_ns
    assert second.arrival.burst_bytes == pytest.approx(306 + 1e6 * delay_ns / 8e9)
    assert admitted.guarantee_ns == first.delay_ns + second.delay_ns


def test_a_refusal_further_along_the_path_changes_nothing() -> None:
    admission = control("full-rate")
    for number in range(3):
        assert isinstance(admission.request(flow(number, rate_bps=1e3, burst_bytes=500)), Admitted)
    before = admission.usage("s1"), admission.usage("s2")
    # 1500 of the 2067 bytes are in use: the burst fits at s1. It has grown by 232 bytes when it reaches s2.
    refusal = admission.request(flow(9, rate_bps=1e6, burst_bytes=560))
    assert isinstance(refusal, Refusal)
    assert (refusal.switch, refusal.quantity) == ("s2", "burst")
    assert (admission.usage("s1"), admission.usage("s2")) == before


def test_second_switch_can_be_the_limit() -> None:
    admission = control("full-rate")
    refusal = admission.request(flow(rate_bps=4e6, burst_bytes=1800))
    assert isinstance(refusal, Refusal)
    assert (refusal.switch, refusal.quantity) == ("s2", "burst")
    assert admission.usage("s1").used("entries") == 0


def test_table_can_be_the_limit() -> None:
    scenario = Scenario(**{**vars(EVALUATION), "entries": 2})
    admission = LokoAdmission(LAB, allocations_of(LAB, FIFTH_RATE, scenario))
    answers = [admission.request(flow(number, rate_bps=1e3)) for number in range(3)]
    assert isinstance(answers[2], Refusal)
    assert (answers[2].quantity, answers[2].used, answers[2].allowed) == ("entries", 2, 2)


def test_control_traffic_is_reserved() -> None:
    flows = evaluation_flows("fifth-rate", 2)
    result = plan(LAB, flows, LokoAdmission(LAB, LIMITS["fifth-rate"], echo_traffic(100)))
    assert [refusal.flow.id for refusal in result.refused] == ["f3"]


def test_frames_that_the_model_does_not_cover_are_refused() -> None:
    with pytest.raises(InputError, match=r"frame_bytes 548 is not a size that s1 was planned for \(306\)"):
        control().request(flow(burst_bytes=600, frame_bytes=548))


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (flow(1), "id 'f1' is admitted already"),
        (flow(1)._replace(id="g"), "'f1' and 'g' have the same hosts and ports"),
        (flow(2, ("H1", "H9")), "has no host 'H9'"),
        (flow(2, ("H1", "H1")), "crosses no switch"),
    ],
)
def test_impossible_requests_are_wrong_input(second, says) -> None:
    admission = control()
    admission.request(flow(1))
    with pytest.raises(InputError, match=says):
        admission.request(second)


def test_release_of_an_unknown_flow_is_wrong_input() -> None:
    with pytest.raises(InputError, match="'f1' is not admitted"):
        control().release("f1", now_ns=0)


requests = st.lists(
    st.builds(
        lambda pair, rate_bps, burst_bytes: (pair, rate_bps, burst_bytes),
        st.sampled_from(PAIRS),
        st.floats(1e3, 4e6),
        st.floats(306, 1200),
    ),
    max_size=20,
)
schemes = st.sampled_from(sorted(ALLOCATION_RULES))


def numbered(asked) -> list[Flow]:
    return [flow(number, *request) for number, request in enumerate(asked)]


@given(schemes, requests)
def test_admission_never_exceeds_the_allocation(scheme, asked) -> None:
    admission = control(scheme)
    for request in numbered(asked):
        admission.request(request)
    for switch, allocation in LIMITS[scheme].items():
        usage = admission.usage(switch)
        assert usage.used("rate") <= allocation.max_rate_bps * (1 + ROUNDING)
        assert usage.used("burst") <= allocation.max_burst_bytes * (1 + ROUNDING)
        assert usage.used("entries") <= 17


@given(schemes, requests, st.randoms())
def test_cancelling_restores_exactly(scheme, asked, random) -> None:
    admission = control(scheme)
    flows = numbered(asked)
    half = len(flows) // 2
    for request in flows[:half]:
        admission.request(request)
    before = {switch: admission.usage(switch) for switch in LAB.switches}
    later = [request.id for request in flows[half:] if isinstance(admission.request(request), Admitted)]
    random.shuffle(later)
    for flow_id in later:
        admission.cancel(flow_id)
    assert {switch: admission.usage(switch) for switch in LAB.switches} == before


@given(schemes, requests, st.randoms())
def test_decisions_are_those_of_the_exact_sums(scheme, asked, random) -> None:
    """The sums that are kept between requests must decide as sums that are computed afresh."""
    admission = control(scheme)
    for request in numbered(asked):
        answer = admission.check(request)
        fits = True
        burst_bytes = request.burst_bytes
        for hop in shortest_path(LAB, request.source, request.destination):
            usage, limits = sums(admission, hop.switch), LIMITS[scheme][hop.switch]
            fits = fits and usage[0] + request.rate_bps <= limits.max_rate_bps * (1 + ROUNDING)
            fits = fits and usage[1] + burst_bytes <= limits.max_burst_bytes * (1 + ROUNDING)
            burst_bytes += request.rate_bps * limits.delay_ns / 8e9
        assert isinstance(answer, Admitted) is fits
        assert admission.request(request) == answer
        if admission.admitted and random.random() < 0.3:
            admission.cancel(random.choice(list(admission.admitted)))


def sums(admission, switch) -> tuple[float, float]:
    terms = [
        hop.arrival
        for admitted in admission.admitted.values()
        for hop in admitted.hops
        if hop.switch == switch
    ]
    return math.fsum(term.rate_bps for term in terms), math.fsum(term.burst_bytes for term in terms)


@given(schemes, requests)
def test_releasing_all_leaves_nothing(scheme, asked) -> None:
    admission, fresh = control(scheme), control(scheme)
    answers = [admission.request(request) for request in numbered(asked)]
    admission.release_all()
    assert not admission.admitted
    assert [admission.usage(name) for name in LAB.switches] == [fresh.usage(name) for name in LAB.switches]
    assert [admission.request(request) for request in numbered(asked)] == answers


@given(schemes, requests, st.randoms())
def test_guarantee_depends_neither_on_later_flows_nor_on_order(scheme, asked, random) -> None:
    flows = numbered(asked)
    accepted = {}
    admission = control(scheme)
    for request in flows:
        answer = admission.request(request)
        if isinstance(answer, Admitted):
            accepted[request.id] = answer
    assert dict(admission.admitted) == accepted
    again = control(scheme)
    fitting = [request for request in flows if request.id in accepted]
    random.shuffle(fitting)
    for request in fitting:
        assert again.request(request) == accepted[request.id]


@given(requests)
def test_refused_stays_refused_until_something_is_released(asked) -> None:
    admission = control()
    for request in numbered(asked):
        answer = admission.request(request)
        if isinstance(answer, Refusal):
            assert answer.used + answer.requested > answer.allowed
            assert admission.request(request) == answer


def test_plan_as_values_is_plain() -> None:
    flows = [flow(1), flow(2, rate_bps=3e6)]
    values = plan(LAB, flows, control()).as_values()
    assert values["lab"] == "two-switch"
    assert values["accepted"][0]["flow"] == "f1"
    assert [hop["switch"] for hop in values["accepted"][0]["hops"]] == ["s1", "s2"]
    assert values["refused"][0]["quantity"] == "rate"
    assert math.isclose(values["accepted"][0]["guarantee_ns"], 4.13e6, rel_tol=1e-3)


def test_plan_of_nothing_is_wrong_input() -> None:
    with pytest.raises(InputError, match="no flows"):
        scenario_of([], entries=17)


def test_check_admits_nothing() -> None:
    admission = control()
    answer = admission.check(flow(1))
    assert isinstance(answer, Admitted)
    assert not admission.admitted
    assert admission.request(flow(1)) == answer


@pytest.mark.parametrize(
    "path",
    [
        [],
        [Hop(switch="s1", output_port=3)],
        [Hop(switch="s1", output_port=2), Hop(switch="s2", output_port=1)],
        [Hop(switch="s2", output_port=1)],
        [Hop(switch="s1", output_port=3), Hop(switch="s2", output_port=3), Hop(switch="s1", output_port=1)],
        [Hop(switch="s1", output_port=3), Hop(switch="s2", output_port=9)],
    ],
    ids=["empty", "short", "elsewhere", "from-elsewhere", "loop", "no-port"],
)
def test_broken_paths_are_wrong_input(path) -> None:
    with pytest.raises(InputError, match="does not lead from H1 to H3"):
        control().request(flow(1), path)


def test_a_path_may_be_given() -> None:
    path = [Hop(switch="s1", output_port=3), Hop(switch="s2", output_port=1)]
    assert control().request(flow(1), path) == control().request(flow(1))


@given(schemes, requests)
def test_what_would_fit_fits(scheme, asked) -> None:
    admission = control(scheme)
    for request in numbered(asked):
        answer = admission.request(request)
        if isinstance(answer, Refusal) and answer.suggestion:
            assert isinstance(admission.check(request._replace(**answer.suggestion.as_values())), Admitted)


def test_usage_names_what_a_refusal_names() -> None:
    admission = control()
    admission.request(flow(1, rate_bps=2e6))
    refusal = admission.request(flow(2, rate_bps=1e6))
    assert isinstance(refusal, Refusal)
    usage = admission.usage("s1")
    share = usage.share(refusal.quantity)
    assert (share.used, share.allowed, share.unit) == (refusal.used, refusal.allowed, refusal.unit)
    assert usage.delay_ns == LIMITS["fifth-rate"]["s1"].delay_ns
    assert refusal.suggestion_text == "a rate of at most 369.722 kbit/s"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30), st.randoms())
def test_exact_sum_is_fsum_whatever_came_and_went(terms, random) -> None:
    total = ExactSum()
    for term in terms:
        total.add(term * 1e-3)
    random.shuffle(terms)
    gone = terms[: len(terms) // 2]
    for term in gone:
        total.remove(term * 1e-3)
    assert total.value == math.fsum(term * 1e-3 for term in terms[len(gone) :])
