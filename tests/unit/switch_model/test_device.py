"""Profiles, and the numbers of sections 3 and 4."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st

from loko.document import PROFILES, InputError
from loko.switch_model.device import load_device, load_profile
from loko.switch_model.linux_switch import LinuxSwitch
from loko.switch_model.scenario import (
    EVALUATION,
    TABLE_1_FRAME_BYTES,
    ActionType,
    Case,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko.switch_model.service_curve import (
    Rounding,
    capacity_bytes,
    capacity_frames,
    processing,
    service_curve,
)

ZODIAC = load_profile("zodiac-fx")
SOURCE = (PROFILES / "zodiac-fx.toml").read_text()


def case(entries, match, frame_bytes, action="output", used="last", priorities="increasing") -> Case:
    return Case(
        entries=entries,
        match=MatchType(match),
        action=ActionType(action),
        used_entry=UsedEntry(used),
        priorities=PriorityOrder(priorities),
        frame_bytes=frame_bytes,
    )


def test_control_plane_times_are_the_papers() -> None:
    """Section 3.2.3: a barrier about 92 us; a delete of all 128 entries 2.3 ms."""
    cpu, transit_ps = ZODIAC.cpu, ZODIAC.integrated_switch.transit_ps.value
    control = cpu.control
    outside_ps = 2 * transit_ps + cpu.loop_ps.value / 2 + control.interrupt_ps.value
    inner_ps = 2 * (8 + 66 + 1) * 80_000
    barrier_ps = outside_ps + control.segment_ps.value + control.barrier_ps.value + inner_ps
    assert barrier_ps / 1e6 == pytest.approx(92, abs=0.5)
    delete_ps = (
        outside_ps
        + control.segment_ps.value
        + control.flow_delete_ps.value
        + 128 * control.delete_hit_ps.value
    )
    assert delete_ps / 1e9 == pytest.approx(2.3, abs=0.01)


@pytest.mark.parametrize(
    ("the_case", "switch_us", "tolerance_us"),
    [
        # Numbers of the paper (sections 3.3.3, 4, 6), with half of the last digit as tolerance.
        (case(17, "five-tuple", 306), 257, 0.5),
        (case(128, "five-tuple", 306), 1350, 5),
        (case(1, "port", 1516), 322, 2),
        (case(1, "port", 1516, action="set-nw-src"), 380, 2),
        (case(128, "port", 64), 880, 10),
        (case(128, "all", 64), 1650, 10),
        (case(1, "port", 64), 50, 5),
        # Figure 10a, read off tick labels: the fast order and two of the three slow ones.
        (case(17, "five-tuple", 790, used="first", priorities="decreasing"), 203, 5),
        (case(17, "five-tuple", 790, used="last", priorities="decreasing"), 347, 5),
        (case(17, "five-tuple", 790, used="first", priorities="increasing"), 347, 5),
    ],
)
def test_processing_time_is_the_papers(the_case, switch_us, tolerance_us) -> None:
    assert processing(ZODIAC, the_case).switch_ns / 1e3 == pytest.approx(switch_us, abs=tolerance_us)


@pytest.mark.parametrize(
    ("the_case", "mbps", "tolerance"),
    [
        (case(128, "all", 64), 0.3, 0.05),
        (case(17, "five-tuple", 306), 11.8, 0.05),
        (case(128, "five-tuple", 306), 1.88, 0.005),
        (case(1, "port", 1516), 1516 / 1537 * 100, 0.001),  # line rate (fig. 10c)
    ],
)
def test_throughput_by_equation_6_is_the_papers(the_case, mbps, tolerance) -> None:
    assert processing(ZODIAC, the_case).throughput_bps / 1e6 == pytest.approx(mbps, abs=tolerance)


@pytest.mark.parametrize(
    ("entries", "frame_bytes", "reached"),
    [(1, 1516, True), (49, 1516, True), (65, 1516, False), (1, 1032, True), (1, 548, False)],
)
def test_line_rate_where_section_3_4_3_says_so(entries, frame_bytes, reached) -> None:
    result = processing(ZODIAC, case(entries, "port", frame_bytes, used="first", priorities="decreasing"))
    assert (result.throughput_bps == result.link_throughput_bps) is reached


def test_equation_5_is_a_lower_bound_of_equation_6() -> None:
    for the_case in Scenario().cases():
        result = processing(ZODIAC, the_case)
        assert result.sequential_throughput_bps <= result.throughput_bps


def test_service_curve_of_section_6() -> None:
    service = service_curve(ZODIAC, EVALUATION)
    assert round(service.rate_bps / 1e6, 2) == 11.85  # printed 11.8; a fifth is printed as 2.37
    assert round(service.curve.latency_ns / 1e3) == 464
    assert round(service.processing_ns / 1e3) == 257
    assert sum(term.value_ns for term in service.terms) == pytest.approx(service.curve.latency_ns)


def test_service_curve_of_section_4() -> None:
    """Five-tuple, output, 306 bytes; entries, priorities and used entry are not known."""
    scenario = Scenario(match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT, packet_sizes_bytes=(306,))
    service = service_curve(ZODIAC, scenario)
    assert round(service.rate_bps / 1e6, 2) == 1.88
    assert round(service.curve.latency_ns / 1e6, 2) == 2.65
    assert service.longest.case.entries == 128


def test_unknown_sizes_take_rate_and_latency_from_different_frames() -> None:
    service = service_curve(
        ZODIAC, Scenario(entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
    )
    assert service.slowest.case.frame_bytes == 64
    assert service.longest.case.frame_bytes == service.largest_frame_bytes == 1516


@examples(20)
@given(st.sampled_from(sorted(MatchType, key=str)), st.integers(1, 128), st.sampled_from(TABLE_1_FRAME_BYTES))
def test_knowing_more_never_worsens_the_curve(match, entries, size) -> None:
    known = service_curve(ZODIAC, Scenario(entries=entries, match=match, packet_sizes_bytes=(size,)))
    vague = service_curve(ZODIAC, Scenario(match=match))
    assert known.rate_bps >= vague.rate_bps
    assert known.curve.latency_ns <= vague.curve.latency_ns
    assert known.capacity_bytes >= vague.capacity_bytes


@given(st.integers(1, 127), st.integers(64, 1517), st.sampled_from(sorted(MatchType, key=str)))
def test_processing_time_grows_with_entries_and_size(entries, size, match) -> None:
    smaller = processing(ZODIAC, case(entries, match, size)).switch_ns
    assert processing(ZODIAC, case(entries + 1, match, size)).switch_ns > smaller
    assert processing(ZODIAC, case(entries, match, size + 1)).switch_ns > smaller


@pytest.mark.parametrize(("frame_bytes", "frames"), [(64, 25), (306, 9), (1516, 3)])
@pytest.mark.parametrize("rounding", Rounding)
def test_buffer_capacity_is_the_papers(frame_bytes, frames, rounding) -> None:
    assert capacity_frames(ZODIAC, frame_bytes, rounding) == frames


@pytest.mark.parametrize(("frame_bytes", "floor", "ceiling"), [(548, 5, 6), (790, 4, 5), (1274, 3, 4)])
def test_buffer_rounding_is_switchable(frame_bytes, floor, ceiling) -> None:
    assert capacity_frames(ZODIAC, frame_bytes, Rounding.FLOOR) == floor
    assert capacity_frames(ZODIAC, frame_bytes, Rounding.CEILING) == ceiling


def test_a_small_frame_can_take_the_unit_that_a_large_one_lacks() -> None:
    """Seven frames of 257 bytes and one of 100 take 22 of 24 units, so an eighth of 257 bytes is lost."""
    lost_at = 100 + 7 * 257 + 100 + 257
    assert capacity_bytes(ZODIAC, (100, 257)) < lost_at < 9 * 257 == capacity_bytes(ZODIAC, (257,))


@examples(300)
@given(st.lists(st.integers(64, 1518), min_size=1, max_size=3, unique=True), st.data())
def test_capacity_of_mixed_sizes_never_overflows(sizes, data) -> None:
    """An arriving frame finds its units as long as the backlog, itself included, is within the capacity."""
    frames = st.sampled_from(sorted(sizes))
    in_work, arriving = data.draw(frames), data.draw(frames)
    free_units, backlog = 24, in_work + arriving
    for waiting in data.draw(st.lists(frames, min_size=24, max_size=24)):
        units = -(-waiting // 128)
        if free_units >= -(-arriving // 128) and units <= free_units:
            free_units -= units
            backlog += waiting
    if free_units < -(-arriving // 128):
        assert backlog > capacity_bytes(ZODIAC, sizes)


def test_profile_by_path(tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(SOURCE)
    assert load_profile(copy) == ZODIAC


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "\nunits = { value",
            "\nunit = { value",
            "unknown field `unit`, expected one of `packets`, `units`, `unit_bytes`",
        ),
        (
            'source = "paper"',
            'source = "rumour"',
            "unknown variant `rumour`, expected one of `paper`, `fit`, `count`,",
        ),
        ("range = [28_906_800, 32_349_900]", "range = 3", "integer `3`, expected an array of length 2"),
        ("format = 1", "format = 2", "profile, format: this emulator reads format 1"),
        ("[ports]", "[ports", "profile, line "),
        ("value = 128, source", 'value = "128", source', 'invalid type: string "128", expected u64'),
        ("\nunits = { value", "\nunits = { value = 24 } # { value", "missing field `source`"),
        ("\nunits = { value", "\nunits = 24 # { value", "buffer.units: must be keys with values"),
    ],
)
def test_wrong_profile_is_one_line(tmp_path: Path, old, new, says) -> None:
    path = tmp_path / "wrong.toml"
    assert old in SOURCE
    path.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_profile(path)
    assert says in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "added",
    ["misses_tagged = true", 'rules = [{ path = "refused", source = "assumption" }]'],
)
def test_rules_of_a_chip_are_refused_where_no_chip_is(tmp_path: Path, added: str) -> None:
    """The simulator would ignore them."""
    source = (PROFILES / "open-vswitch-1g.toml").read_text()
    path = tmp_path / "wrong.toml"
    path.write_text(source.replace("[table]\n", f"[table]\n{added}\n", 1))
    with pytest.raises(InputError, match=r"table: rules and misses_tagged are of a chip's table") as error:
        load_device(path)
    assert "\n" not in str(error.value)


def test_a_device_of_another_kind_loads_but_gives_no_worst_case() -> None:
    device = load_device("banana-pi-r1")
    assert isinstance(device, LinuxSwitch)
    assert device.ports.link_rate_bps.value == 1_000_000_000
    with pytest.raises(InputError) as error:
        load_profile("banana-pi-r1")
    assert str(error.value).startswith("profile 'banana-pi-r1': this device gives no worst case: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "linux-switch"', 'kind = "abacus"', 'kind: choose "linux-switch" or "generic-switch"'),
        ('kind = "linux-switch"', "kind = 1", "kind = 1: invalid type: integer `1`, expected a string"),
        ("tag_bytes", "tag_byte", "unknown field `tag_byte`, expected one of `transit_ns`"),
        ("value = 512", 'value = "1"', 'ring_frames = { value = "1"'),
        ("value = 512", "value = 0", "cpu.ring_frames: choose 1 to 1000000"),
    ],
)
def test_wrong_profile_of_another_kind_is_one_line(tmp_path: Path, old, new, says) -> None:
    path = tmp_path / "wrong.toml"
    source = (PROFILES / "banana-pi-r1.toml").read_text()
    assert old in source
    path.write_text(source.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_device(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"profile 'zodiac': no such name .*zodiac-fx"):
        load_profile("zodiac")


@pytest.mark.parametrize(
    "arguments", [{"entries": 0}, {"packet_sizes_bytes": ()}, {"packet_sizes_bytes": (63,)}]
)
def test_impossible_scenario_is_refused(arguments) -> None:
    with pytest.raises(InputError, match="scenario: "):
        Scenario(**arguments)


def test_scenario_larger_than_the_table_is_refused() -> None:
    with pytest.raises(InputError, match="129 entries; zodiac-fx holds 128"):
        service_curve(ZODIAC, Scenario(entries=129))
