"""The coarse stand-in's numbers and commands, and the message if the kernel did something else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.document import InputError
from loko.switch_model.device import load_profile
from loko.switch_model.scenario import EVALUATION, ActionType, loko_scenario
from loko.switch_model.service_curve import service_curve
from loko_testbed.live import stand_in
from loko_testbed.live.mininet_link import LinkLimit, rates_mbps
from loko_testbed.live.shaping import TbfParameters
from loko_testbed.live.stand_in import Names, SharedQueue, port_commands, queue_commands
from loko_testbed.live.timed_stand_in import DelayTerms, HeldSwitch, inner
from loko_testbed.reproduce.studies.fidelity_bench import expected
from loko_testbed.simulation.runner import RunError

PROFILE = load_profile("zodiac-fx")
QUEUE = SharedQueue.of(PROFILE, EVALUATION)


def test_the_paper_s_scenario() -> None:
    assert QUEUE.places == 9
    # 11.849 Mbit/s of frames including FCS; Linux counts 302 of 306 bytes.
    assert QUEUE.bucket.rate_bytes_per_s * 8 * 306 / 302 == pytest.approx(11.849e6, rel=1e-4)
    assert QUEUE.bucket.burst_bytes == 302 + QUEUE.bucket.rate_bytes_per_s * 50 // 1_000_000


@given(size=st.integers(64, 1518), entries=st.integers(1, 128))
def test_one_frame_and_never_two_fit_into_the_bucket(size: int, entries: int) -> None:
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=(size,))
    queue = SharedQueue.of(PROFILE, scenario)
    seen = size - 4
    rounded = queue.bucket.burst_bytes - 1 - queue.bucket.rate_bytes_per_s // 1_000_000
    assert seen <= rounded, "tc rounds down, and tbf drops what is larger than its bucket in silence"
    assert queue.bucket.burst_bytes < 2 * seen
    assert queue.places == 1 + 24 // -(-size // 128)
    frames_per_s = queue.bucket.rate_bytes_per_s / seen
    assert frames_per_s == pytest.approx(service_curve(PROFILE, scenario).rate_bps / 8 / size, rel=1e-3)
    assert queue.bucket.limit_bytes >= queue.places * seen


def test_of_several_sizes_the_slowest_rate_and_the_largest_frame() -> None:
    both = SharedQueue.of(PROFILE, loko_scenario(entries=17, packet_sizes_bytes=(64, 1518)))
    small = SharedQueue.of(PROFILE, loko_scenario(entries=17, packet_sizes_bytes=(64,)))
    assert both.places == 1 + 24 // 12
    assert both.bucket.burst_bytes > 1514
    assert both.bucket.rate_bytes_per_s / 1514 * 1518 == pytest.approx(
        small.bucket.rate_bytes_per_s / 60 * 64, rel=1e-3
    )


@given(size=st.integers(64, 1518), entries=st.integers(1, 128), action=st.sampled_from(ActionType))
def test_the_timed_stand_in_has_the_board_s_times_for_every_length(
    size: int, entries: int, action: ActionType
) -> None:
    scenario = loko_scenario(entries=entries, packet_sizes_bytes=(306,), action=action)
    device = DelayTerms.of(PROFILE, scenario)
    case, *_ = replace(scenario, packet_sizes_bytes=(size,)).cases()
    board = expected.ExpectedDevice.of(PROFILE, case)
    assert (device.cpu_base_ps + device.cpu_byte_ps * size) / 1e3 == pytest.approx(board.cpu_ns, abs=1)
    assert device.transit_ps / 1e3 == board.transit_ns
    assert -(-size // device.unit_bytes) == board.units_of_frame


def test_the_timed_stand_in_is_between_the_network_and_open_vswitch() -> None:
    device = DelayTerms.of(PROFILE, EVALUATION)
    held = HeldSwitch(name="s1", ports={1: "s1-eth1", 3: "s1-eth3"}, device=device)
    assert inner(held) == {1: "s1-ovs1", 3: "s1-ovs3"}


def test_a_scenario_that_the_device_does_not_hold_is_refused() -> None:
    with pytest.raises(InputError, match="129 entries; zodiac-fx holds 128"):
        DelayTerms.of(PROFILE, loko_scenario(entries=129, packet_sizes_bytes=(306,)))
    with pytest.raises(InputError, match="129 entries; zodiac-fx holds 128"):
        SharedQueue.of(PROFILE, loko_scenario(entries=129, packet_sizes_bytes=(306,)))


def test_the_commands_of_a_queue() -> None:
    rate = QUEUE.bucket.rate_bytes_per_s * 8
    assert [" ".join(command) for command in queue_commands("s1", QUEUE)] == [
        "ip link add s1-queue type ifb",
        f"tc qdisc add dev s1-queue root handle 1: tbf rate {rate}bit burst 375 limit 2791",
        "tc qdisc add dev s1-queue parent 1:1 handle 10: pfifo limit 9",
        "ip link set s1-queue up",
    ]


def test_the_commands_of_a_port_lead_through_the_shared_queue() -> None:
    commands = [" ".join(command) for command in port_commands("s1", 3, "s1-eth3")]
    assert commands[0].startswith("ip link add s1-br3 type bridge stp_state 0")
    assert "ip link add s1-in3 type veth peer name s1-ovs3" in commands
    assert commands[-2:] == [
        "tc qdisc add dev s1-eth3 clsact",
        "tc filter add dev s1-eth3 ingress protocol all prio 1 u32 match u32 0 0"
        " action mirred egress redirect dev s1-queue",
    ]
    assert not any("$" in command for command in commands)


def test_an_interface_name_that_linux_would_not_take_is_refused() -> None:
    assert Names(switch="s1").far(1) == "s1-ovs1"
    with pytest.raises(RunError, match=r"sixteenletters: the interface name 'sixteenletters-queue' has more"):
        _ = Names(switch="sixteenletters").queue


SHOWN = [
    {"kind": "tbf", "options": {"rate": QUEUE.bucket.rate_bytes_per_s, "burst": 374}},
    {"kind": "pfifo", "options": {"limit": 9}},
]


def test_a_queue_as_tc_shows_it_is_taken() -> None:
    assert QUEUE.differences(SHOWN) is None
    assert replace(QUEUE, places=8).differences(SHOWN) == "the queue has 9 places instead of 8"


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ([], "the queueing disciplines are none"),
        (SHOWN[:1], "the queueing disciplines are tbf"),
        ([{"kind": "pfifo_fast"}], "the queueing disciplines are pfifo_fast"),
        ([{"kind": "tbf", "options": {"rate": 5, "burst": 375}}, SHOWN[1]], "the rate is 5 bytes/s"),
        (
            [{"kind": "tbf", "options": {**SHOWN[0]["options"], "burst": 300}}, SHOWN[1]],
            "the burst is 300 bytes instead of 375",
        ),
    ],
)
def test_any_other_queue_is_told(shown: list[object], says: str) -> None:
    assert says in str(QUEUE.differences(shown))


def test_a_kernel_that_takes_something_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_in, "run", lambda *_, **__: "")
    monkeypatch.setattr(stand_in, "run_json", lambda *_, **__: [{"kind": "noqueue"}])
    monkeypatch.setattr(stand_in, "_leave_frames_alone", lambda: None)
    with pytest.raises(RunError, match="s1: shared queue: the queueing disciplines are noqueue"):
        stand_in.build("s1", {1: "s1-eth1"}, QUEUE)


def test_a_bucket_of_a_fast_shaper_may_be_rounded_by_a_microsecond() -> None:
    bucket = TbfParameters(rate_bytes_per_s=1_460_000, burst_bytes=330, limit_bytes=3000)
    shown = {"kind": "tbf", "options": {"rate": 1_460_000, "burst": 328}}
    assert bucket.differences([shown]) is None
    shown["options"]["burst"] = 327
    assert bucket.differences([shown]) == "the burst is 327 bytes instead of 330"


def test_mininet_s_link_has_the_rate_and_the_buffer_of_the_switch() -> None:
    limit = LinkLimit.of(PROFILE, EVALUATION)
    assert limit.bw_mbps == pytest.approx(QUEUE.bucket.rate_bytes_per_s * 8 / 1e6, rel=1e-5)
    assert limit.max_queue_size == 9


def test_rates_of_classes_are_read_whatever_their_unit() -> None:
    shown = "class htb 5:1 root prio 0 rate {} ceil 11693Kbit burst 15337b cburst 1598b \n"
    for text, rate in (("11693Kbit", 11.693), ("12Mbit", 12), ("1Gbit", 1000), ("800bit", 0.0008)):
        assert rates_mbps(shown.format(text)) == [pytest.approx(rate)]
    assert rates_mbps("") == []
