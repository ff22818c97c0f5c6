"""Whose clock counts: promises hold for senders as fast as they may be, on boards as slow as they may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from evaluation.virtual import SEQUENCE_OFFSET, frame_of, lab_network
from loko.admission import Admission, Admitted
from loko.allocation import FIFTH_RATE, FULL_RATE, Scheme, allocate, frontier
from loko.control_traffic import interference
from loko.device import Profile, deterministic, load_profile, profile_text
from loko.document import PROFILES
from loko.entries import switch_entries
from loko.flow import Flow
from loko.lab import Lab, load_lab
from loko.mix import mix_of_equal
from loko.packets import frame_server
from loko.quantity import Count
from loko.rivals import Epsilon, QJump
from loko.scenario import EVALUATION
from loko.schemes import CHOICES, Choice, SchemeName, admission_of, choice_named
from loko.service import service_curve
from loko.tolerance import Tolerance

LAB = load_lab("two-switch")
EXACT = LAB.with_exact_clocks()
ZODIAC = load_profile("zodiac-fx")
FAST_PPM = ZODIAC.tolerance.sender_clock_ppm.value
SLOW_PPM = ZODIAC.tolerance.board_clock_ppm.value
STRETCH = ZODIAC.tolerance.stretch
ENDS = (("H1", "H2"), ("H2", "H1"))
FRAME = 306
MIX = mix_of_equal(ENDS, rate_bps=2.94e6, burst_bytes=FRAME, frame_bytes=FRAME)
"""Four such flows take nearly all of the rate."""


def ppm(board: int, sender: int) -> Tolerance:
    return Tolerance(
        board_clock_ppm=Count(value=board, source="assumption"),
        sender_clock_ppm=Count(value=sender, source="assumption"),
        cable_ns=Count(value=0, source="assumption"),
    )


def flow(number: int, rate_bps: float, burst_bytes: float = FRAME) -> Flow:
    source, destination = ENDS[number % 2]
    return Flow(f"f{number}", source, destination, 1000 + number, 2000 + number, rate_bps, burst_bytes, FRAME)


def largest(fits: Callable[[float], bool], most: float) -> float:
    """The largest rate that fits, to the last bit of a binary search."""
    low, high = 0.0, most
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def all_fit(admission: Admission, flows: Sequence[Flow]) -> bool:
    admission.release_all()
    return all(isinstance(admission.request(one), Admitted) for one in flows)


def admission(choice: Choice, lab: Lab) -> Admission:
    return admission_of(
        lab,
        choice,
        EVALUATION,
        mix=MIX if choice.is_optimised else None,
        traffic={} if choice.scheme in {SchemeName.LOKO, SchemeName.PACKETS} else None,
    )


def test_the_stretch_covers_the_fastest_sender_on_the_slowest_board() -> None:
    assert ppm(0, 0).stretch == 1
    assert ppm(50, 0).stretch == pytest.approx(1 / (1 - 50e-6))
    assert ppm(0, 100).stretch == pytest.approx(1.0001 / 0.9999)  # of two hosts, too
    assert ppm(300, 100).stretch == pytest.approx(1.0001 / 0.9997)
    assert 1.0002 <= STRETCH <= 1.0003


def test_a_profile_says_how_far_clocks_may_be_off_or_the_usual_is_assumed(tmp_path: Path) -> None:
    text = (PROFILES / "zodiac-fx.toml").read_text()
    path = tmp_path / "old.toml"
    path.write_text(text.split("[tolerance]")[0])
    assert load_profile(path).tolerance.stretch == STRETCH
    path = tmp_path / "worse.toml"
    path.write_text(profile_text("zodiac-fx", sender_clock_ppm=500))
    assert load_profile(path).tolerance.stretch == pytest.approx(1.0005 / 0.9995)
    for wrong in (-1, 1_000_000):
        with pytest.raises(ValidationError, match=f"sender_clock_ppm {wrong} is not in 0 to 10000"):
            ppm(0, wrong)


@pytest.mark.parametrize("name", list(CHOICES))
def test_every_scheme_promises_less_rate_by_what_clocks_may_be_off(name) -> None:
    choice = choice_named(name)

    def most(empty: Admission) -> float:
        return largest(lambda rate_bps: all_fit(empty, [flow(0, rate_bps)]), 200e6)

    tolerant, exact = (most(admission(choice, lab)) for lab in (LAB, EXACT))
    # Whole frames are counted in whole nanoseconds of some 200 us.
    assert 0 < tolerant * STRETCH <= exact * (1 + 1e-5)


@pytest.mark.parametrize("scheme", [FULL_RATE, FIFTH_RATE, Scheme(name="other", rate_fraction=0.7)])
@pytest.mark.parametrize("reserves", [False, True])
def test_an_allocation_is_that_of_the_slowest_board_as_the_fastest_sender_counts(scheme, reserves) -> None:
    exact, tolerant = (
        allocate(
            service_curve(profile, EVALUATION), scheme, *([interference(profile, {}, 17)] if reserves else [])
        )
        for profile in (ZODIAC.with_exact_clocks(), ZODIAC)
    )
    assert tolerant.max_rate_bps <= exact.max_rate_bps / STRETCH
    assert tolerant.max_rate_bps == pytest.approx(exact.max_rate_bps / STRETCH, rel=1e-6)
    assert tolerant.delay_ns == pytest.approx(exact.delay_ns * STRETCH)
    # What the buffer holds has no clock. (Without a share for others, which grows, it is the same burst.)
    assert tolerant.max_burst_bytes == pytest.approx(exact.max_burst_bytes, abs=1e-3)
    splits = frontier(tolerant.service)
    assert splits.service_rate_bps == tolerant.service.rate_bps / STRETCH


def test_times_of_whole_frames_are_bounds_for_slow_and_for_fast_boards() -> None:
    exact, tolerant = (frame_server(one, EVALUATION) for one in (ZODIAC.with_exact_clocks(), ZODIAC))
    for name in ("service_ns", "idle_ns", "links_ns", "longest_wire_ns", "work_ns"):
        assert getattr(tolerant.times[FRAME], name) >= STRETCH * (getattr(exact.times[FRAME], name) - 3), name
    for name in ("least_service_ns", "least_idle_ns", "wire_ns", "least_work_ns"):
        assert getattr(tolerant.times[FRAME], name) <= (getattr(exact.times[FRAME], name) + 3) / STRETCH, name
    assert tolerant.first_work_ns() >= STRETCH * (exact.first_work_ns() - 3)
    assert tolerant.delay_ns(FRAME, 0) >= exact.delay_ns(FRAME, 0) + ZODIAC.tolerance.cable_ns.value


def test_qjump_takes_an_epoch_for_longer() -> None:
    exact, tolerant = (
        QJump.of(lab, EVALUATION, frame_bytes=FRAME, epsilon=Epsilon.PAPER) for lab in (EXACT, LAB)
    )
    assert tolerant.epoch_ns == pytest.approx(exact.epoch_ns * STRETCH)


# On emulated boards ----------------------------------------------------------------------------------------


def filled(choice: Choice, lab: Lab, flows: int) -> list[Admitted]:
    """So many flows of one frame that share the largest rate that the scheme gives away."""
    empty = admission(choice, lab)

    def asked(rate_bps: float) -> list[Flow]:
        return [flow(number, rate_bps / flows) for number in range(flows)]

    all_fit(empty, asked(largest(lambda rate_bps: all_fit(empty, asked(rate_bps)), 20e6)))
    assert len(empty.admitted) == flows
    return list(empty.admitted.values())


def carried(admitted: Sequence[Admitted], folder: Path, *, seconds: float) -> tuple[int, float]:
    """Frames lost, and the longest delay over its guarantee, if all send all that they may by fast clocks.

    The boards are as slow as they may be.
    """
    path = folder / "slow.toml"
    path.write_text(profile_text("zodiac-fx", capacity_factor=1 - SLOW_PPM * 1e-6))
    flows = [one.flow for one in admitted]
    network = lab_network(
        LAB,
        switch_entries(LAB, flows, entries=17),
        seed=1,
        profile_of=dict.fromkeys(LAB.switches, str(path)),
    )
    for number, one in enumerate(flows):
        rate_bps = one.rate_bps * (1 + FAST_PPM * 1e-6)
        free = one.burst_bytes / one.frame_bytes
        counts = np.arange(1, int(seconds * rate_bps / 8 / one.frame_bytes) + int(free))
        instants_ns = np.maximum(0, np.ceil((counts - free) * one.frame_bytes * 8e9 / rate_bps))
        network.add_pattern(
            one.source,
            flow=number,
            frame=frame_of(LAB, one),
            sequence_offset=SEQUENCE_OFFSET,
            shaper_rate_bps=math.ceil(rate_bps),
            shaper_burst_bytes=one.burst_bytes,
            instants_ns=instants_ns.astype(np.int64),
            destination=one.destination,
        )
    result = network.run(duration_ns=int(seconds * 1e9), drain_ns=1_000_000_000)
    arrived = result.received_ns >= 0
    delays_ns = (result.received_ns - result.sent_ns)[arrived]
    guarantees_ns = np.array([one.guarantee_ns for one in admitted])[result.flow[arrived]]
    return int((~arrived).sum()), float((delays_ns / guarantees_ns).max())


@pytest.mark.parametrize(("name", "flows"), [("full-rate", 6), ("optimised", 4), ("packet-granular", 2)])
def test_fast_senders_and_slow_boards_keep_to_what_was_promised(name, flows, tmp_path) -> None:
    """And do not if clocks are taken to be exact: what is too much adds up for two minutes."""
    lost, worst = carried(filled(choice_named(name), LAB, flows), tmp_path, seconds=120)
    assert (lost, worst <= 1) == (0, True)
    lost, worst = carried(filled(choice_named(name), EXACT, flows), tmp_path, seconds=120)
    assert lost or worst > 1


def test_profiles_of_other_kinds_have_clocks_too() -> None:
    banana = load_lab("two-switch-banana-pi")
    for switch in banana.switches.values():
        assert not isinstance(switch.profile, Profile)
        assert switch.profile.tolerance.stretch > 1
    for switch in banana.with_exact_clocks().switches.values():
        assert switch.profile.tolerance.stretch == 1
    assert deterministic(EXACT.switches["s1"].profile).tolerance.cable_ns.value == 0
