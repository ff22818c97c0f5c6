"""How much slower boards and chips may be before a promise falls, and plans for the ends of ranges."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from filled_boards import (
    FRAME,
    LAB,
    admission,
    admitted_of,
    carried,
    filled,
    flow,
)
from varied_profiles import in_ranges, loaded, numbers_of, varied

from loko.admission import Admission, Admitted, Terms
from loko.admission.packets import frame_server
from loko.admission.port_queues import port_device
from loko.admission.schemes import (
    VARIANTS,
    SchemeName,
    SchemeVariant,
    admission_of,
    conditions_of,
    variant_named,
)
from loko.document import PROFILES, InputError
from loko.switch_model.allocation import frontier
from loko.switch_model.control_traffic import HEARTBEAT, interference
from loko.switch_model.device import Device, Profile, load_device, load_profile, profile_text
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.margin import GuaranteeKind, Margin, MarginLimit, margin
from loko.switch_model.scenario import loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.switch_model.speed import fastest, slowed, slowest
from loko.topology.lab import Lab, load_lab
from loko_testbed.simulation.worst_case.port_trial import transmit_and_judge

MILLION = 1_000_000
BOARD_SCHEMES = ("full-rate", "fifth-rate", "optimised", "packet-granular")


def margin_of(filled_up: Admission) -> Margin:
    falls = filled_up.falls_if_slower()
    assert falls is not None
    return margin(falls)


def slower_board(folder: Path, slower_ppm: float) -> Path:
    """Return a board that takes longer by this many millionths for all that its CPU and its chip do."""

    def longer(name: str, number: Mapping[str, int]) -> int:
        works = name.startswith(("cpu.", "integrated_switch.transit")) and name.endswith("_ps")
        value = number["value"]
        return math.floor(value * (1 + slower_ppm / MILLION)) if works and value > 0 else value

    return varied(folder, "zodiac-fx", longer)


def less_capable_board(folder: Path, slower_ppm: float) -> Path:
    """Return a board whose busy CPU takes so much longer from a frame to the next."""
    path = folder / f"less-capable-{slower_ppm:.0f}.toml"
    path.write_text(profile_text("zodiac-fx", capacity_factor=1 / (1 + slower_ppm / MILLION)))
    return path


# The attack -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "flows"), [("full-rate", 6), ("packet-granular", 2)])
def test_a_board_at_the_slow_end_of_its_range_breaks_promises_unless_they_are_robust(
    name: str, flows: int, tmp_path: Path
) -> None:
    """A capacity of 0.97 breaks a full set, whose margin says so. A robust set bears the end, 0.94."""
    low, _ = load_profile("zodiac-fx").cpu.capacity_factor.range or (0, 0)
    usual, robust = (filled(variant_named(name), lab, flows) for lab in (LAB, LAB.robust()))
    lost, worst = carried(admitted_of(usual), less_capable_board(tmp_path, 30_000), seconds=20)
    assert lost > 1000
    assert worst > 1
    assert margin_of(usual).slower_ppm < 1000
    lost, worst = carried(
        admitted_of(robust), less_capable_board(tmp_path, (1 / low - 1) * MILLION), seconds=20
    )
    assert (lost, worst <= 1) == (0, True)
    assert robust.admitted["f0"].flow.rate_bps < low * usual.admitted["f0"].flow.rate_bps


def test_a_full_rate_that_is_given_away_leaves_no_slack() -> None:
    told = margin_of(filled(variant_named("full-rate"), LAB, 6))
    assert told == Margin(0, MarginLimit("s1", GuaranteeKind.LOSS))
    assert (
        told.describe(is_robust=False)
        == "no slack: if a switch takes longer than its profile says, frames may be lost, first at s1"
    )


# Promises of a margin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARD_SCHEMES)
@pytest.mark.parametrize("seed", range(3))
def test_boards_slower_by_less_than_the_margin_keep_every_promise(
    name: str, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"{name} {seed}")
    asked = admission(variant_named(name), LAB)
    for number in range(40):
        burst = FRAME * rng.choice((1, 1, 1.5, 2))
        asked.request(flow(number, rng.choice((2e4, 3e5, 1.5e6)) * rng.uniform(0.2, 1), burst))
    told = margin_of(asked)
    assert told.slower_ppm > 0 or name == "optimised"  # whose splits may fit the flows exactly
    for board in (slower_board, less_capable_board):
        slow = board(tmp_path, told.slower_ppm - 1)
        lost, worst = carried(admitted_of(asked), slow, seconds=4)
        assert (lost, worst <= 1) == (0, True)


@pytest.mark.parametrize(("name", "flows"), [("full-rate", 5), ("packet-granular", 2)])
@pytest.mark.parametrize("part", [0.9, 0.95])
def test_boards_slower_by_little_more_than_the_margin_break_a_promise(
    name: str, flows: int, part: float, tmp_path: Path
) -> None:
    """The rate limits these sets: just below the margin all is kept, and 1 % beyond it is not."""
    asked = filled(variant_named(name), LAB, flows, part=part)
    told = margin_of(asked)
    assert told.slower_ppm == pytest.approx((1 / part - 1) * MILLION, rel=0.05)
    assert told.beyond == MarginLimit("s1", GuaranteeKind.LOSS)
    lost, worst = carried(admitted_of(asked), slower_board(tmp_path, told.slower_ppm - 1), seconds=20)
    assert (lost, worst <= 1) == (0, True)
    lost, _ = carried(admitted_of(asked), slower_board(tmp_path, told.slower_ppm + 10_000), seconds=20)
    assert lost


@pytest.mark.parametrize("name", BOARD_SCHEMES)
def test_a_margin_falls_with_every_flow(name: str) -> None:
    asked = admission(variant_named(name), LAB)
    assert asked.falls_if_slower() is None
    margins = []
    for number in range(40):
        if isinstance(asked.request(flow(number, 3e5)), Admitted):
            margins.append(margin_of(asked).slower_ppm)
    assert margins == sorted(margins, reverse=True)
    assert margins[0] > 100_000 > margins[-1]


@pytest.mark.parametrize("name", [name for name, choice in VARIANTS.items() if choice.is_baseline])
def test_baselines_have_no_margin(name: str) -> None:
    asked = admission(variant_named(name), LAB)
    assert isinstance(asked.request(flow(0, 1e5)), Admitted)
    assert asked.falls_if_slower() is None


@pytest.mark.parametrize("name", ["fifth-rate", "packet-granular"])
def test_none_is_told_while_released_flows_count(name: str) -> None:
    asked = admission(variant_named(name), LAB)
    for number in range(3):
        asked.request(flow(number, 3e5))
    asked.release("f0", now_ns=0)
    assert asked.falls_if_slower() is None
    asked.advance(10**12)
    assert margin_of(asked).slower_ppm > 0


@pytest.mark.parametrize("name", ["fifth-rate", "packet-granular", "ports"])
def test_the_margin_is_a_condition_where_it_is_known(name: str) -> None:
    conditions = conditions_of(variant_named(name))
    terms = Terms(lab=LAB, reserved="nothing", entries=dict.fromkeys(LAB.switches, 17))
    assert "no-slower-than" not in conditions.ids(terms)
    told = Margin(25_000, MarginLimit("s2", GuaranteeKind.LATENESS))
    (stated,) = (
        condition
        for condition in conditions.stated(replace(terms, margin=told))
        if condition.id == "no-slower-than"
    )
    assert stated.details == (f"For these flows, {told.describe(is_robust=False)}.",)
    assert "2.50 %" in stated.details[0]


def test_a_bisection_returns_what_it_has_checked() -> None:
    def falls_from(first_ppm: int) -> Margin:
        fall = MarginLimit("s1", GuaranteeKind.LATENESS)
        return margin(lambda slower_ppm: fall if slower_ppm >= first_ppm else None)

    for first_ppm in (0, 1, 99, 101, 1000, 1001, 63_999, 5_000_000, 9_000_000):
        told = falls_from(first_ppm)
        assert max(0, first_ppm - 101) <= told.slower_ppm < max(first_ppm, 1)
        assert told.beyond == MarginLimit("s1", GuaranteeKind.LATENESS)
    assert margin(lambda _: None) == Margin(9_000_000, None)


# Chips ----------------------------------------------------------------------------------------------------

CHIPS = loko_scenario(entries=60, packet_sizes_bytes=(FRAME,))


def chip_ring(profile: Path) -> Lab:
    """Return the lab of chips with another profile."""
    lab = load_lab("chip-ring")
    switches = {
        name: replace(switch, profile=load_device(profile), profile_file=profile)
        for name, switch in lab.switches.items()
    }
    return replace(lab, switches=switches)


def slower_chip(folder: Path, profile: str, slower_ppm: float) -> Path:
    """Return a chip that takes longer by this many millionths, also between two checks of its queues."""

    def longer(name: str, number: Mapping[str, int]) -> int:
        works = name.startswith(("pipeline.", "priorities.")) and name.endswith("_ns")
        return math.floor(number["value"] * (1 + slower_ppm / MILLION)) if works else number["value"]

    return varied(folder, profile, longer)


def chips_filled(lab: Lab, seed: int, target_ns: float | None) -> Admission:
    rng = Random(seed)
    ports = admission_of(lab, SchemeVariant(scheme=SchemeName.PORTS), CHIPS, target_ns=target_ns)
    for number in range(12):
        source, destination = rng.sample(list(lab.hosts), 2)
        asked = flow(number, rng.uniform(1e6, 4e7), FRAME * rng.randint(1, 8))
        ports.request(asked._replace(source=source, destination=destination))
    return ports


@pytest.mark.parametrize("profile", ["dell-s3048-on", "ideal-1g"])
@pytest.mark.parametrize("seed", range(3))
def test_chips_slower_by_less_than_the_margin_keep_every_promise(
    profile: str, seed: int, tmp_path: Path
) -> None:
    asked = chips_filled(chip_ring(PROFILES / f"{profile}.toml"), seed, 60_000.0)
    told = margin_of(asked)
    assert told.beyond is not None
    assert told.slower_ppm > 1000
    slow = chip_ring(slower_chip(tmp_path, profile, told.slower_ppm - 1))
    result = transmit_and_judge(slow, admitted_of(asked), seed=seed, packets=2000)
    assert result.packets > 300
    assert not result.broken


def test_chips_slower_by_more_than_the_margin_break_a_promise(tmp_path: Path) -> None:
    """A target that is little above what a lone frame may take is broken by a chip that checks seldom."""
    asked = chips_filled(chip_ring(PROFILES / "dell-s3048-on.toml"), 1, 45_000.0)
    told = margin_of(asked)
    slow = chip_ring(slower_chip(tmp_path, "dell-s3048-on", 6 * told.slower_ppm + 2 * MILLION))
    assert transmit_and_judge(slow, admitted_of(asked), seed=1, packets=2000).broken


# The ends of ranges ---------------------------------------------------------------------------------------


def board_bounds(slow: Profile, fast: Profile, *, entries: int = 17) -> dict[str, float]:
    """Return bounds of a board, with a sign so that larger is more careful."""
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=(64, FRAME, 1518))
    splits = frontier(service_curve(slow, scenario), interference(slow, HEARTBEAT, entries))
    bounds = {
        "rate": -splits.max_rate_bps,
        "capacity": -splits.capacity_bytes,
        "latency": splits.latency_ns,
        "delay": splits.empty_delay_ns,
        "service": -splits.service_rate_bps,
    }
    server = frame_server(slow, scenario, HEARTBEAT, fastest=fast)
    bounds |= {
        "units": -(server.ring_units - server.reserved_units),
        "poll": server.poll_ns,
        "share": server.interruption.share,
        "burst": server.interruption.burst_ns,
        "bunching": server.bunching_ns,
        "cable": server.cable_ns,
    }
    for size, times in server.times.items():
        for name in ("service_ns", "idle_ns", "links_ns", "longest_wire_ns", "work_ns", "units"):
            bounds[f"{name} {size}"] = getattr(times, name)
        for name in ("least_service_ns", "least_idle_ns", "wire_ns", "least_work_ns"):
            bounds[f"{name} {size}"] = -getattr(times, name)
    return bounds


def chip_bounds(slow: GenericSwitch, fast: GenericSwitch) -> dict[str, float]:
    """Return bounds of a chip's port, with a sign so that larger is more careful."""
    bounds = {}
    for cabled in (2, 3, 4, 8):
        port = port_device(slow, frame_bytes=(64, FRAME, 1518), cabled_ports=cabled, fastest=fast)
        server = port.server
        bounds |= {
            f"rate {cabled}": -server.service.rate_bps,
            f"latency {cabled}": server.service.latency_ns,
            f"before {cabled}": server.before_ns,
            f"spread {cabled}": server.spread_ns,
            f"line {cabled}": server.line_rate_bps,
            f"room {cabled}": -port.room_bytes,
        }
        bounds |= {f"least {size}": -port.least_ns(size) for size in (64, FRAME, 1518)}
    return bounds


def less_careful(bounds: Mapping[str, float], than: Mapping[str, float]) -> list[str]:
    """Return the names of the bounds that are less careful than others, beyond rounding of floats."""
    return [name for name, value in bounds.items() if value < than[name] - 1e-9 * abs(than[name])]


def robust_bounds(device: Device) -> dict[str, float]:
    slow, fast = slowest(device), fastest(device)
    if isinstance(slow, Profile) and isinstance(fast, Profile):
        return board_bounds(slow, fast)
    assert isinstance(slow, GenericSwitch)
    assert isinstance(fast, GenericSwitch)
    return chip_bounds(slow, fast)


def bounds_of(device: Device) -> dict[str, float]:
    if isinstance(device, Profile):
        return board_bounds(device, device)
    assert isinstance(device, GenericSwitch)
    return chip_bounds(device, device)


PROMISING = ("zodiac-fx", "dell-s3048-on", "ideal-1g", "nec-pf5240", "nec-pf5240-long-queues")


@pytest.mark.parametrize("name", PROMISING)
@pytest.mark.parametrize("corners", [True, False])
def test_bounds_at_the_ends_are_bounds_for_every_device_within(
    name: str, corners: bool, tmp_path: Path
) -> None:
    careful = robust_bounds(load_device(name))
    assert less_careful(careful, than=bounds_of(load_device(name))) == []
    rng = Random(f"{name} {corners}")
    judged = 0
    for _ in range(25):
        try:
            within = bounds_of(loaded(tmp_path, name, in_ranges(rng, corners=corners)))
        except InputError:  # such a CPU would take a frame before it has handed over the last
            continue
        judged += 1
        assert less_careful(careful, than=within) == []
    assert judged >= 5


@pytest.mark.parametrize("scheme", ["full-rate", "fifth-rate", "packet-granular"])
@pytest.mark.parametrize("seed", range(2))
def test_a_robust_plan_holds_on_boards_anywhere_in_their_ranges(
    scheme: str, seed: int, tmp_path: Path
) -> None:
    """At the slow ends, at drawn corners, and between, for a set that uses up the robust plan."""
    rng = Random(f"{scheme} {seed}")
    admitted = admitted_of(filled(variant_named(scheme), LAB.robust(), 6))

    def anywhere(name: str, number: Mapping[str, float]) -> float:
        if name == "cpu.capacity_factor":  # with more than 1.03 the emulated CPU is none that A3 describes
            return number["range"][0] if seed == 0 else rng.uniform(number["range"][0], 1.02)
        if name.startswith("integrated_switch.buffer") or name.startswith("flow_control."):
            return number["value"]
        return in_ranges(rng, corners=seed == 0)(name, number)

    for _ in range(3):
        lost, worst = carried(admitted, varied(tmp_path, "zodiac-fx", anywhere), seconds=4)
        assert (lost, worst <= 1) == (0, True)


def test_a_margin_of_a_robust_plan_counts_from_the_slow_ends(tmp_path: Path) -> None:
    """Both together: at the slow ends of all ranges, and slower than those by less than the margin."""
    asked = filled(variant_named("full-rate"), LAB.robust(), 5, part=0.9)
    told = margin_of(asked)
    assert told.slower_ppm == pytest.approx((1 / 0.9 - 1) * MILLION, rel=0.05)

    def slow(name: str, number: Mapping[str, float]) -> float:
        low, high = number.get("range", (number["value"],) * 2)
        if name == "cpu.capacity_factor":
            return low
        works = name.startswith(("cpu.", "integrated_switch.transit")) and name.endswith("_ps")
        if not works or high <= 0:
            return number["value"]
        return math.floor(high * (1 + (told.slower_ppm - 1) / MILLION))

    lost, worst = carried(admitted_of(asked), varied(tmp_path, "zodiac-fx", slow), seconds=20)
    assert (lost, worst <= 1) == (0, True)


@pytest.mark.parametrize("name", PROMISING)
def test_the_slow_end_of_each_number_is_the_one_with_worse_bounds(name: str, tmp_path: Path) -> None:
    """One number at a time at either end: no bound is more careful than with all at their slow ends."""
    usual, careful = load_device(name), robust_bounds(load_device(name))
    moved = 0
    for key, number in _ranged(name):
        for end in number["range"]:
            device = loaded(tmp_path, name, partial(_moved, key, end))
            try:
                within = bounds_of(device)
            except InputError:
                continue
            moved += within != bounds_of(usual)
            assert less_careful(careful, than=within) == [], key
    assert moved or name == "ideal-1g"


def _moved(key: str, end: float, at: str, old: Mapping[str, Any]) -> float:
    return end if at == key else old["value"]


def _ranged(name: str) -> list[tuple[str, Mapping[str, Any]]]:
    document = tomllib.loads((PROFILES / f"{name}.toml").read_text(encoding="utf-8"))
    return [(key, number) for key, number in numbers_of(document) if "range" in number]


def test_a_chip_whose_room_is_not_certain_is_refused_in_one_line() -> None:
    lab = chip_ring(PROFILES / "dell-s4048-on.toml").robust()
    with pytest.raises(InputError, match="s1: dell-s4048-on: nothing can be promised"):
        admission_of(lab, SchemeVariant(scheme=SchemeName.PORTS), CHIPS)


def test_robust_chips_have_less_room() -> None:
    """The S3048-ON with four cabled ports: its memory and the share of a queue may be less than fitted."""
    usual = load_device("dell-s3048-on")
    rooms = [
        port_device(slow, frame_bytes=(FRAME,), cabled_ports=4, fastest=fast).room_bytes
        for slow, fast in ((usual, usual), (slowest(usual), fastest(usual)))
    ]
    assert 0.8 * rooms[0] < rooms[1] < 0.9 * rooms[0]


def test_what_is_slowed_is_what_a_device_works_for() -> None:
    board = load_profile("zodiac-fx")
    slow = slowed(board, 10_000)
    assert slow.cpu.base_ps.value == math.ceil(board.cpu.base_ps.value * 1.01)
    assert slow.cpu.control.echo_ps.value == math.ceil(board.cpu.control.echo_ps.value * 1.01)
    assert slow.cpu.action.drop == board.cpu.action.drop  # what it saves does not grow
    assert slow.cpu.timers.period_ns == board.cpu.timers.period_ns
    assert (slow.tolerance, slow.ports, slow.buffer) == (board.tolerance, board.ports, board.buffer)
    assert slowed(board, 0) == board
