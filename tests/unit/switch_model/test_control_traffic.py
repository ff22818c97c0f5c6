"""Control traffic in CPU time: costs of messages, token buckets, and what is left for flows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from loko.document import LABS, InputError
from loko.switch_model.allocation import ALLOCATION_RULES, FIFTH_RATE, FULL_RATE, allocate
from loko.switch_model.control_traffic import (
    NO_INTERFERENCE,
    MessageRate,
    MessageType,
    interference,
    message_ns,
    parse_control,
    ring_units,
    silences_keepalive,
)
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import EVALUATION, UNKNOWN, ActionType, MatchType, Scenario
from loko.switch_model.service_curve import service_curve
from loko.switch_model.split import split
from loko.topology.lab import load_lab
from loko.topology.lab_allocation import allocations_of
from loko_testbed.cli.main import app

ZODIAC = load_profile("zodiac-fx")
SERVICE = service_curve(ZODIAC, EVALUATION)


def test_a_message_costs_what_section_3_2_3_measured_and_what_tcp_adds() -> None:
    """The measured barrier includes both links and the mean wait, but not the reply's acknowledgement."""
    acknowledgement_ns = 1_400 + 38_000
    barrier_ns = message_ns(ZODIAC, MessageType.BARRIER, 17)
    assert 85_000 < barrier_ns - acknowledgement_ns < 97_000  # the request may be longer
    # The largest flow-mod, a Delete of all 128 entries, was about 2.3 ms.
    assert 2_300_000 < message_ns(ZODIAC, MessageType.FLOW_DELETE, 128) < 2_450_000


def test_costs_grow_with_the_table_where_the_paper_says_so() -> None:
    """Figure 7b: Add is flat, and strict deletion costs less than non-strict."""
    for small, large in ((1, 17), (17, 128)):
        assert message_ns(ZODIAC, MessageType.FLOW_ADD, small) == message_ns(
            ZODIAC, MessageType.FLOW_ADD, large
        )
        for kind in (MessageType.FLOW_DELETE, MessageType.FLOW_DELETE_STRICT, MessageType.FLOW_MODIFY):
            assert message_ns(ZODIAC, kind, small) < message_ns(ZODIAC, kind, large)
    assert message_ns(ZODIAC, MessageType.FLOW_DELETE_STRICT, 128) < message_ns(
        ZODIAC, MessageType.FLOW_DELETE, 128
    )


@pytest.mark.parametrize("entries", [1, 17, 128])
def test_an_unknown_message_is_the_dearest(entries) -> None:
    others = [message_ns(ZODIAC, kind, entries) for kind in MessageType if kind is not MessageType.UNKNOWN]
    assert message_ns(ZODIAC, MessageType.UNKNOWN, entries) == max(others)


def test_unknown_entries_mean_a_full_table() -> None:
    traffic = {MessageType.FLOW_DELETE: MessageRate(per_s=1)}
    assert interference(ZODIAC, traffic, UNKNOWN) == interference(ZODIAC, traffic, 128)


def test_buckets_add_up_and_bursts_count_at_once() -> None:
    echo_ns, barrier_ns = (message_ns(ZODIAC, kind, 17) for kind in (MessageType.ECHO, MessageType.BARRIER))
    load = interference(ZODIAC, parse_control(["echo=10x3", "barrier=2"]), 17).messages
    assert load.burst_ns == pytest.approx(3 * echo_ns + barrier_ns)
    assert load.share == pytest.approx((10 * echo_ns + 2 * barrier_ns) / 1e9)
    bucket = load.in_bytes(SERVICE.rate_bps)
    assert bucket.rate_bps == pytest.approx(load.share * SERVICE.rate_bps)
    assert bucket.burst_bytes == pytest.approx(load.burst_ns * SERVICE.rate_bps / 8e9)


def test_an_echo_costs_more_than_the_papers_66_bytes() -> None:
    """I14 in labs/papers/loko.yml: the paper charges 66 bytes at R, which are 44.6 us."""
    bucket = interference(ZODIAC, parse_control(["echo=750"]), 17).messages.in_bytes(SERVICE.rate_bps)
    assert bucket.burst_bytes > 2 * 66
    assert bucket.rate_bps > 2 * 66 * 8 * 750


def test_without_interference_the_allocation_is_the_papers() -> None:
    for scheme in ALLOCATION_RULES.values():
        assert allocate(SERVICE, scheme, NO_INTERFERENCE) == allocate(SERVICE, scheme)


def test_a_delete_longer_than_d_is_waited_for() -> None:
    """I28 in labs/papers/loko.yml: a Delete takes 2.3 ms, longer than D = 1.86 ms.

    Frames wait for it, and those that arrive meanwhile need room in the buffer.
    """
    scenario = Scenario(match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, packet_sizes_bytes=(306,))
    service = service_curve(ZODIAC, scenario)
    taken = interference(ZODIAC, parse_control(["flow-delete=1"]), scenario.entries)
    for scheme in (FULL_RATE, FIFTH_RATE):
        quiet, disturbed = allocate(service, scheme), allocate(service, scheme, taken)
        assert disturbed.feasible
        assert disturbed.max_burst_bytes < quiet.max_burst_bytes
        waiting = disturbed.max_rate_bps * taken.messages.burst_ns / 8e9
        room = service.capacity_bytes - disturbed.max_burst_bytes
        assert room >= waiting + service.largest_frame_bytes
        assert (
            disturbed.delay_ns >= taken.messages.burst_ns + disturbed.max_burst_bytes * 8e9 / service.rate_bps
        )


def test_figure_19b_is_feasible_with_what_echoes_really_take() -> None:
    taken = interference(ZODIAC, parse_control(["echo=750"]), 17)
    shares = split(allocate(SERVICE, FULL_RATE, taken), ratio=0)
    assert shares.feasible
    assert 306 <= shares.second.burst_bytes < 335  # the paper's reservation leaves 335.2 bytes
    assert shares.second.rate_bps < 5.7265e6


def test_control_frames_take_units_of_the_buffer(tmp_path: Path) -> None:
    """Only on a control network: an echo takes 2 units, its acknowledgement 1, the board's own frames 2."""
    text = (LABS / "two-switch" / "lab.yml").read_text(encoding="utf-8")
    path = tmp_path / "lab.yml"
    path.write_text(text.replace("control: session", "control: network"), encoding="utf-8")
    traffic = parse_control(["echo=1"])
    assert ring_units(ZODIAC, traffic, 17, delay_ns=0) == 2 + 1 * 3
    assert ring_units(ZODIAC, traffic, 17, delay_ns=2e6) == 2 + 2 * 3
    assert ring_units(ZODIAC, parse_control(["flow-statistics=1"]), 17, delay_ns=0) == 2 + 1 * (2 + 4)
    session, network = (
        allocations_of(load_lab(name), FIFTH_RATE, EVALUATION, traffic)["s1"] for name in ("two-switch", path)
    )
    # 24 - 8 = 16 units hold 5 frames of 3 units, and one more is in service.
    assert network.service.capacity_bytes == 6 * 306
    assert session.service.capacity_bytes == 9 * 306
    assert network.max_burst_bytes == pytest.approx(session.max_burst_bytes - 3 * 306)


KINDS = st.dictionaries(
    st.sampled_from(list(MessageType)),
    st.builds(MessageRate, per_s=st.floats(0.1, 50), burst=st.integers(1, 4)),
    max_size=4,
)


@given(traffic=KINDS, more=KINDS, scheme=st.sampled_from(list(ALLOCATION_RULES.values())))
def test_more_control_traffic_never_leaves_more_to_flows(traffic, more, scheme) -> None:
    # If the driver keeps a board from asking for signs of life, more messages may cost less.
    assume(silences_keepalive(traffic) or not silences_keepalive(more))
    try:
        less = allocate(SERVICE, scheme, interference(ZODIAC, traffic, 17))
        least = allocate(SERVICE, scheme, interference(ZODIAC, {**more, **traffic}, 17))
    except InputError:
        return
    assert least.max_rate_bps <= less.max_rate_bps
    assert least.max_burst_bytes <= less.max_burst_bytes + 1e-6
    if least.feasible:
        assert least.delay_ns >= less.delay_ns - 1e-3 or scheme is not FIFTH_RATE


def test_too_much_control_traffic_is_refused() -> None:
    with pytest.raises(InputError, match="which leaves nothing to flows; lower its rates"):
        interference(ZODIAC, parse_control(["flow-delete=3000"]), 17)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo", "is not KIND=PER_SECOND"),
        ("ping=3", "is not KIND=PER_SECOND"),
        ("echo=-1", "give a rate above 0"),
        ("echo=1e999", "give a rate above 0"),
        ("echo=1x0", "give a rate above 0"),
        ("echo=1.2.3", "is not a number"),
    ],
)
def test_wrong_control_traffic_is_one_line(text, words) -> None:
    with pytest.raises(InputError, match=words):
        parse_control([text])


def test_a_kind_twice_is_refused() -> None:
    with pytest.raises(InputError, match="there twice; add the rates up"):
        parse_control(["echo=1", "echo=2"])


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


def test_the_commands_take_control_traffic_and_baselines() -> None:
    model = (
        "model",
        "zodiac-fx",
        "--packet-size",
        "306",
        "--entries",
        "17",
        "--match",
        "five-tuple",
        "--json",
    )
    status, quiet = run(*model)
    assert status == 0
    status, disturbed = run(*model, "--control", "flow-add=10x4", "--control", "echo=0.5")
    assert status == 0
    before, after = json.loads(quiet), json.loads(disturbed)
    assert [message["kind"] for message in after["control"]["messages"]] == ["flow-add", "echo"]
    fifth = "fifth-rate"
    assert after["allocations"][fifth]["max_burst_bytes"] < before["allocations"][fifth]["max_burst_bytes"]
    flows = str(LABS / "two-switch" / "flows.yml")
    status, text = run("plan", "two-switch", flows, "--scheme", "qjump", "--epsilon", "consistent", "--json")
    values = json.loads(text)
    assert values["scheme"] == "qjump"
    assert status == (1 if values["refused"] else 0)
    status, text = run("plan", "two-switch", flows, "--scheme", "silo", "--control", "echo=1")
    assert (status, text.count("\n")) == (2, 1)
    status, text = run("plan", "two-switch", flows, "--scheme", "silo", "--json")
    assert json.loads(text)["scheme"] == "silo"
