"""Every guarantee reserves CPU time for the board's own activities, or the driver prevents them."""

from __future__ import annotations

from random import Random

import pytest
from board_end import BoardEnd, Pair
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from releases import carry
from switch_emulator import Board

from loko.admission import Admitted
from loko.admission.packets import PacketAdmission
from loko.admission.schemes import admission_of, variant_named
from loko.control.driver import OWN_MARK, Driver
from loko.control.entries import padding_entries, switch_entries
from loko.control.messages import session_segments
from loko.control.notices import Diagnostic
from loko.control.wire import entry_of
from loko.document import InputError
from loko.switch_model.control_traffic import (
    AS_PRINTED,
    HEARTBEAT,
    NO_MESSAGES,
    Interference,
    MessageRate,
    MessageType,
    TimeBucket,
    driver_traffic,
    interference,
    silences_keepalive,
)
from loko.switch_model.device import load_profile
from loko.switch_model.flow import Flow
from loko.switch_model.mix import mix_of_equal
from loko.switch_model.scenario import EVALUATION
from loko.topology.network import on_shortest_paths
from loko_testbed.reproduce.studies.attacks import star
from loko_testbed.simulation.worst_case.schemes import GUARANTEED

ZODIAC = load_profile("zodiac-fx")
STAR = star()
FLOWS = [Flow(f"f{number}", "H1", "H3", 2000 + number, 7000, 1e5, 306.0, 306) for number in range(9)]
SEED = 1
ANSWER = bytes([1, 3, 0, 8, 0xD2, 4, 0, 0])
S = 1_000_000_000
TIMERS = TimeBucket(
    share=ZODIAC.cpu.timers.cost_ps.value / 1e3 / ZODIAC.cpu.timers.period_ns.value,
    burst_ns=ZODIAC.cpu.timers.cost_ps.value / 1e3,
)


def first_question_ns() -> int:
    """Return when the board of `carry` sends its first echo request."""
    switch = STAR.switches["s1"]
    board = Board(profile=switch.profile.name, config=dict(switch.config), seed=SEED * 1000)
    board.connected(1_000_000)
    tables = switch_entries(STAR, on_shortest_paths(STAR, FLOWS), entries=17)
    for number, segment in enumerate(session_segments(tables["s1"])):
        board.segment(2_000_000 * (number + 1), segment)
    board.advance(S)
    board.outputs()
    board.advance(4 * S)
    return next(output.at_ns for output in board.outputs() if output.kind == "controller")


def worst(admission: PacketAdmission) -> float:
    """Admit as many one-frame flows of a host as fit, and release them near the board's echo request."""
    answers = [admission.request(flow) for flow in FLOWS]
    admitted = [answer for answer in answers if isinstance(answer, Admitted)]
    asked_ns = first_question_ns()
    largest = 0.0
    for ahead_ns in range(140_000, 260_000, 20_000):
        for answer in ([], [(asked_ns + 30_000, ANSWER)]):
            at_ns = asked_ns - ahead_ns
            releases = {number: [at_ns] for number in range(len(admitted))}
            flows = [granted.flow for granted in admitted]
            seen = carry(STAR, flows, releases, entries=17, seed=SEED, control={"s1": answer})
            assert all(sighting.departed_ns is not None for sighting in seen)
            last_ns = max(sighting.departed_ns or 0 for sighting in seen)
            largest = max(largest, (last_ns - at_ns) / admitted[0].guarantee_ns)
    return largest


def test_a_guarantee_holds_while_the_board_asks_for_a_sign_of_life() -> None:
    assert worst(PacketAdmission(STAR, EVALUATION)) <= 1


def test_timers_alone_are_too_little_to_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above can fail."""
    nothing = TimeBucket(share=0.0, burst_ns=0.0)
    timers = Interference(messages=nothing, board=TIMERS)
    monkeypatch.setattr("loko.admission.packets.server.interference", lambda *_: timers)
    assert worst(PacketAdmission(STAR, EVALUATION)) > 1


TRAFFIC = st.dictionaries(
    st.sampled_from(list(MessageType)),
    st.builds(MessageRate, per_s=st.floats(0.1, 50), burst=st.integers(1, 4)),
    max_size=4,
)


@given(TRAFFIC)
def test_whatever_the_controller_sends_the_board_has_its_share(traffic) -> None:
    quiet, board = (interference(ZODIAC, sent, 17).board for sent in (NO_MESSAGES, traffic))
    assert quiet.burst_ns > TIMERS.burst_ns + 73_000
    assert board == (TIMERS if silences_keepalive(traffic) else quiet)


@pytest.mark.parametrize("name", GUARANTEED)
def test_no_scheme_guarantees_anything_without_what_the_board_does(name) -> None:
    """The reservation is made without being requested."""
    mix = mix_of_equal([("H1", "H3")], rate_bps=1e5, burst_bytes=306, frame_bytes=306)
    admission = admission_of(STAR, variant_named(name), EVALUATION, mix=mix)
    most = interference(ZODIAC, NO_MESSAGES, 17)
    rate = admission.usage("s1").share("rate")
    whole = 100.0 if rate.unit.startswith("%") else 11.8493e6
    assert rate.allowed <= whole * (1 - most.share) * 1.0001
    if name.startswith("packet"):
        with pytest.raises(InputError, match="is not in the paper"):
            admission_of(STAR, variant_named(name), EVALUATION, mix=mix, traffic=AS_PRINTED)


def test_only_a_driver_that_is_fast_enough_keeps_the_board_from_asking() -> None:
    assert silences_keepalive(HEARTBEAT)
    assert silences_keepalive(driver_traffic(20))
    assert silences_keepalive(driver_traffic(0))
    assert not silences_keepalive(driver_traffic(0.2))  # one segment every 2.5 s
    assert not silences_keepalive({MessageType.TABLE_STATISTICS: MessageRate(per_s=10)})


def kept(seed: int, changes_per_s: float, steps_ns: tuple[int, int], duration_ns: int) -> Pair:
    """Simulate a driver whose table changes sometimes; it is polled and gets replies at random times."""
    chance = Random(seed)
    pace_ns = round(S / 2 / changes_per_s) if changes_per_s else 0
    both = Pair(Driver(capacity=128, own_mark=OWN_MARK, pace_ns=pace_ns, batch=2), BoardEnd())
    entries = [
        entry_of(entry, cookie=OWN_MARK << 48 | number)
        for number, entry in enumerate(padding_entries(STAR, 12), start=1)
    ]
    for entry in entries[:5]:
        both.driver.ensure(entry)
    both.connect()
    both.settle(most=30_000)  # with its pacing
    end_ns = both.end.now_ns + duration_ns
    while both.end.now_ns < end_ns:
        if chance.random() < 0.01:
            chance.choice((both.driver.ensure, both.driver.remove))(chance.choice(entries))
        both.step(chance.randint(*steps_ns))
    return both


@examples(20)
@given(st.integers(0, 1 << 32), st.sampled_from([0.0, 0.25, 1.0, 20.0]))
def test_the_driver_lets_no_board_ask_for_a_sign_of_life(seed, changes_per_s) -> None:
    """Replies and ticks may be delayed by 0.24 s each: ten times what a healthy machine needs."""
    assert kept(seed, changes_per_s, (1_000_000, 240_000_000), 60 * S).end.asked == 0


def test_a_driver_that_is_silent_too_long_is_asked_and_says_so() -> None:
    """Shows that the test above can fail."""
    both = kept(1, 20.0, (600_000_000, 700_000_000), 60 * S)
    assert both.end.asked > 0
    told = [notice.text for notice in both.notices if isinstance(notice, Diagnostic)]
    assert any("it may have asked for a sign of life" in text for text in told)
