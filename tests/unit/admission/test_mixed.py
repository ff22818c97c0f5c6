"""Admission for labs with boards and chips, against hand calculations, Loko's scheme and the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from loko.admission import Admitted, Refusal, Terms
from loko.admission.class_targets import with_class_targets
from loko.admission.mixed import MixedAdmission
from loko.admission.port_queues.device import planned_entries
from loko.admission.schemes import (
    SchemeName,
    admission_of,
    bounds_by_switch,
    conditions_of,
    default_scheme,
    variant_named,
)
from loko.document import InputError
from loko.notebook_api import plan
from loko.switch_model.control_traffic import AS_PRINTED, HEARTBEAT, NO_MESSAGES, ControlTraffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import UNKNOWN, loko_scenario
from loko.topology.lab import Lab, lab_of
from loko.topology.lab_allocation import Allocator
from loko.topology.requests import Request
from loko_testbed.simulation.worst_case.port_trial import mixed_trial

FRAME = 306
WIRE = FRAME + 20
SCENARIO = loko_scenario(entries=17, packet_sizes_bytes=(FRAME,))
BOARD, CHIP = "zodiac-fx", "ideal-1g"


def line(*profiles: str) -> Lab:
    """Return switches s0, s1, ... in a line, each with two hosts: h0a, h0b, ...."""
    switches, hosts, links = {}, {}, []
    for number, profile in enumerate(profiles):
        mac = f"70:b3:d5:6c:00:{number:02x}"
        config = {"mac": mac, "ofchecks": False} if profile == BOARD else {}
        switches[f"s{number}"] = {"datapath_id": f"00:00:{mac}", "profile": profile, "config": config}
        for port, which in enumerate("ab", start=1):
            place = len(hosts) + 1
            hosts[f"h{number}{which}"] = {"mac": f"02:00:00:00:00:{place:02x}", "ip": f"10.0.0.{place}/24"}
            links.append({"a": f"h{number}{which}", "b": f"s{number}:{port}"})
        if number:
            links.append({"a": f"s{number - 1}:3", "b": f"s{number}:4"})
    return lab_of({"name": "line", "title": "line", "switches": switches, "hosts": hosts, "links": links})


LAB = line(BOARD, CHIP, BOARD)


def flow(
    number: int,
    source: str,
    destination: str,
    *,
    kbps: float = 100.0,
    frames: float = 1,
    frame_bytes: int = FRAME,
) -> Flow:
    return Flow(
        f"f{number}",
        source,
        destination,
        5000 + number,
        6000 + number,
        kbps * 1e3,
        frames * frame_bytes,
        frame_bytes,
    )


def mixed(
    lab: Lab = LAB,
    *,
    traffic: ControlTraffic = NO_MESSAGES,
    target_ns: float | None = None,
    classes: int = 1,
) -> MixedAdmission:
    return MixedAdmission(lab, SCENARIO, traffic=traffic, target_ns=target_ns, classes=classes)


def test_what_the_switches_are_decides_the_scheme() -> None:
    assert default_scheme(LAB) is SchemeName.MIXED
    assert default_scheme(line(BOARD, BOARD)) is SchemeName.LOKO
    assert default_scheme(line(CHIP, CHIP)) is SchemeName.PORTS
    # Nothing is known of the ports of this one, so no scheme takes it for what it is.
    assert default_scheme(line(BOARD, "hp-e3800", CHIP)) is SchemeName.LOKO
    board, chip = "one server for all ports", "a queue for each port"
    assert bounds_by_switch(LAB, variant_named("mixed")) == {"s0": board, "s1": chip, "s2": board}
    assert bounds_by_switch(LAB, variant_named("ports")) is None
    assert plan(LAB, [flow(0, "h0a", "h2a")]).scheme == "mixed"


def test_a_lone_flow_waits_at_a_board_as_loko_says() -> None:
    """T' + l/R + b/R' at the first board, where its burst has grown by less than a byte."""
    admission = mixed()
    admission.request(flow(0, "h0a", "h1a", frames=2))
    splits = Allocator(LAB, SCENARIO, NO_MESSAGES, switches=["s0", "s2"]).frontiers()["s0"]
    expected_ns = splits.latency_ns + FRAME * 8e9 / splits.service_rate_bps
    cable = admission._servers["h0a"]
    wait_ns = admission.bounds_ns["s0"] - expected_ns
    # Both frames come one after another on the cable: the second one a slot after the first.
    slot_ns = WIRE * 8e9 / cable.line_rate_bps
    assert wait_ns == pytest.approx(2 * FRAME * 8e9 / splits.max_rate_bps - slot_ns, abs=1_000)


def test_a_burst_grows_by_the_jitter_of_every_kind_of_switch() -> None:
    """At the second board it has grown by r (d - least) of cable, board and chip."""
    admission = mixed()
    admission.request(flow(0, "h0a", "h2a", kbps=1000))
    network, bounds = admission._state.network, admission._state.network.bounds
    (arriving,) = network.arriving("s2", bounds)
    steps = admission._state.flows["f0"].steps[:-1]
    jitter_ns = sum(bounds[step.server] - step.least_ns for step in steps)
    on_wire = WIRE / FRAME
    assert [step.server for step in steps] == ["h0a", "s0", "s1:3"]
    assert arriving.bucket.burst_bytes == pytest.approx(on_wire * (FRAME + 1e6 * jitter_ns / 8e9))
    assert arriving.line_rate_bps == pytest.approx(1e8, rel=1e-3)  # of the chip's port to the board


def test_ports_of_a_board_share_its_server_and_those_of_a_chip_do_not() -> None:
    admission = mixed()
    board = [flow(0, "h0a", "h1a", frames=2), flow(1, "h0b", "h0a", frames=2)]
    alone_ns = mixed()
    for one in board:
        assert isinstance(admission.request(one), Admitted)
    alone_ns.request(board[0])
    assert admission.bounds_ns["s0"] > alone_ns.bounds_ns["s0"]
    chip = mixed()
    chip.request(flow(0, "h1a", "h1b", frames=2))
    before = dict(chip.bounds_ns)
    chip.request(flow(1, "h1b", "h1a", frames=2))
    assert chip.bounds_ns["s1:2"] == before["s1:2"]


def test_classes_share_the_queue_of_a_board_and_part_at_a_chip() -> None:
    """Beside a burst of another class a flow waits at the board as beside one of its own.

    At the chip only the lower class waits for the higher one.
    """
    lone, burst = flow(0, "h0a", "h1a"), flow(1, "h0b", "h1a", frames=2)

    def bounds_ns(*flows: Flow) -> dict[str, int]:
        admission = mixed(classes=2)
        assert all(isinstance(admission.request(each), Admitted) for each in flows)
        return dict(admission.bounds_ns)

    low, low_burst = (each._replace(traffic_class=2) for each in (lone, burst))
    alone, together = bounds_ns(lone), bounds_ns(lone, burst)
    for flows in ((lone, low_burst), (low, burst), (low, low_burst)):
        assert bounds_ns(*flows)["s0"] == together["s0"] > alone["s0"]
    port = "s1:1"
    # The other class brings one more frame of the jitter by which the board has let its burst grow.
    assert bounds_ns(lone, low_burst)[port] == pytest.approx(alone[port], rel=0.01)
    assert bounds_ns(low, burst)[f"{port} class 2"] > 1.2 * bounds_ns(low)[f"{port} class 2"]


def test_a_class_that_only_boards_forward_has_their_bounds() -> None:
    admission = mixed(classes=2)
    answer = admission.request(flow(0, "h0a", "h0b")._replace(traffic_class=2))
    assert isinstance(answer, Admitted)
    assert admission.servers(answer) == ("h0a", "s0")


def test_targets_of_classes_are_of_chips_and_leave_boards_theirs() -> None:
    asked = [
        Request(flow(0, "h0a", "h1a"), 4e6),
        Request(flow(1, "h0a", "h1a")._replace(traffic_class=2), 30e6),
        Request(flow(2, "h0a", "h0b")._replace(traffic_class=2), 1e6),
    ]

    def make(requests: Sequence[Request], class_targets_ns: Mapping[int, float]) -> MixedAdmission:
        classes = max(request.flow.traffic_class for request in requests)
        return MixedAdmission(
            LAB, SCENARIO, traffic=NO_MESSAGES, classes=classes, class_targets_ns=class_targets_ns
        )

    admission = with_class_targets(LAB, asked, make)
    assert isinstance(admission, MixedAdmission)
    for request in asked[:2]:
        answer = admission.request(request.flow)
        assert isinstance(answer, Admitted)
        assert request.deadline_ns is not None
        assert 0.9999 * request.deadline_ns < answer.guarantee_ns <= request.deadline_ns
    assert admission._targets["s0"] == mixed()._targets["s0"]


def test_a_refusal_names_the_board_or_the_port() -> None:
    admission = mixed()
    too_fast = admission.check(flow(0, "h0a", "h1a", kbps=20_000))
    assert isinstance(too_fast, Refusal)
    assert (too_fast.switch, too_fast.quantity) == ("s0", "rate")
    too_much = admission.check(flow(0, "h0a", "h1a", frames=20))
    assert isinstance(too_much, Refusal)
    assert (too_much.switch, too_much.quantity) == ("s0", "delay")
    of_port = admission.check(flow(0, "h1a", "h1b", kbps=999_000))
    assert isinstance(of_port, Refusal)
    assert (of_port.switch, of_port.quantity) == ("s1", "rate of h1a's cable")
    numbers = [flow(number, "h0a", "h0b", kbps=1) for number in range(18)]
    answers = [admission.request(one) for one in numbers]
    last = next(answer for answer in answers if isinstance(answer, Refusal))
    assert last.switch == "s0"


def test_a_table_is_planned_for_few_entries_only_where_they_take_time() -> None:
    assert planned_entries(LAB, 17) == {"s0": 17, "s1": 10_000, "s2": 17}
    assert planned_entries(line(CHIP, CHIP), 17) == {"s0": 17, "s1": 17}
    assert planned_entries(LAB, UNKNOWN) == {"s0": 128, "s1": 10_000, "s2": 128}
    admission = mixed()
    answers = [admission.request(flow(number, "h1a", "h1b", kbps=1)) for number in range(30)]
    assert all(isinstance(answer, Admitted) for answer in answers)


def test_usage_of_a_board_is_of_the_switch() -> None:
    admission = mixed()
    admission.request(flow(0, "h0a", "h2a"))
    board = [share.quantity for share in admission.usage("s0").shares]
    assert board == ["rate", "delay", "burst", "entries"]
    assert admission.usage("s1").share("rate of port 3").used > 0
    assert {demand.quantity for demand in admission.demands(admission.admitted["f0"])} == {
        "rate",
        "rate of port 3",
        "entries",
    }
    assert admission.servers(admission.admitted["f0"]) == ("h0a", "s0", "s1:3", "s2")


def test_what_the_controller_sends_is_reserved_at_boards() -> None:
    quiet, polled = mixed(), mixed(traffic=HEARTBEAT)
    for admission in (quiet, polled):
        admission.request(flow(0, "h0a", "h2a"))
    assert polled.bounds_ns["s0"] > quiet.bounds_ns["s0"]
    assert polled.bounds_ns["s1:3"] >= quiet.bounds_ns["s1:3"]
    with pytest.raises(InputError, match="is not in the paper"):
        admission_of(LAB, variant_named("mixed"), SCENARIO, traffic=AS_PRINTED)


def test_a_target_is_kept_at_every_server_and_may_be_too_short_for_a_board() -> None:
    admission = mixed(target_ns=3e6)
    answer = admission.request(flow(0, "h0a", "h2a"))
    assert isinstance(answer, Admitted)
    assert max(answer.delays_ns) < 3.1e6
    with pytest.raises(InputError, match=r"target 0\.2 ms: a frame may take .* ms at s0; choose more"):
        mixed(target_ns=2e5)


def test_conditions_are_those_of_the_switches_that_the_lab_has() -> None:
    def stated(lab: Lab) -> set[str]:
        terms = Terms(lab=lab, reserved="nothing", entries=planned_entries(lab, 17))
        return set(conditions_of(variant_named("mixed")).ids(terms))

    of_chips = {"other-traffic-lowest-queue", "no-jumbo-frames", "no-pause", "uncabled-ports-unused"}
    of_boards = {"housekeeping-off", "control-as-reserved", "openflow-version", "other-traffic-elsewhere"}
    assert stated(LAB) >= of_chips | of_boards
    boards_alone = stated(line(BOARD, BOARD))
    assert boards_alone >= of_boards
    assert not boards_alone & of_chips
    assert not stated(LAB) & {"only-these-flows", "switches-as-configured"}


def test_a_margin_is_one_for_all_kinds() -> None:
    admission = mixed(target_ns=3e6)
    for number in range(4):
        admission.request(flow(number, "h0a", "h2a", kbps=300))
    falls = admission.falls_if_slower()
    assert falls is not None
    assert falls(0) is None
    limit = falls(2_000_000)
    assert limit is not None
    assert limit.switch in LAB.switches


def test_a_released_flow_counts_until_its_frames_are_gone() -> None:
    admission = mixed()
    number = 0
    while isinstance(admission.request(flow(number, "h0a", "h2a", kbps=10, frames=2)), Admitted):
        number += 1
    again = flow(90, "h0a", "h2a", kbps=10, frames=2)
    assert number > 1
    admission.release("f0", now_ns=0)
    refused = admission.check(again)
    assert isinstance(refused, Refusal)
    gone_ns = admission.drain_time_ns("f1")
    admission.advance(20 * gone_ns)
    assert isinstance(admission.check(again), Admitted)


@pytest.mark.parametrize("seed", range(10))
def test_no_packet_of_a_random_set_is_later_than_its_bound(seed: int) -> None:
    trial = mixed_trial(seed, packets=1500)
    assert trial.verdict.packets > 300
    assert not trial.verdict.broken
    assert not trial.verdict.events


@pytest.mark.parametrize("seed", range(10))
def test_no_packet_of_a_changing_set_is_late_or_lost(seed: int) -> None:
    trial = mixed_trial(seed, is_changing=True)
    assert not trial.verdict.broken
    assert not trial.verdict.events
