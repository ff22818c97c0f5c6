"""A few probes tell all kinds of wrong wiring apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loko_testbed.measure.bench.inventory import ControllerPort, InventoryPort
from loko_testbed.measure.bench.wiring import NOTHING, Observations, Wiring, diagnose

NAMES = {1: InventoryPort(interface="eth1", tap="tap1"), 2: InventoryPort(interface="eth2", tap="tap2")}
WIRING = Wiring(
    ports=NAMES, controller=ControllerPort(interface="eth3", listen="10.0.1.8:6633"), datapath_id=0x2A
)
RIGHT = Observations(
    datapath_id=0x2A,
    control_tap_saw=True,
    arrived_at={1: 1, 2: 2},
    came_out_at={1: {1}, 2: {2}},
    taps_at_entrance={1},
    taps_at_exit={2},
)


def test_a_right_wiring_is_right() -> None:
    assert diagnose(WIRING, RIGHT) is None
    assert diagnose(replace(WIRING, datapath_id=None), replace(RIGHT, datapath_id=7)) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"datapath_id": None}, "no controller connection: no switch connects to 10.0.1.8:6633"),
        (
            {"datapath_id": 0x2B},
            "wrong switch: the one that connects has datapath id 000000000000002b, the inventory says"
            " 000000000000002a",
        ),
        ({"control_tap_saw": False}, "missing tap: eth3 sees nothing of the controller's connection"),
        (
            {"arrived_at": {1: 2, 2: 1}, "came_out_at": {1: {2}, 2: {1}}},
            "swapped ports: eth1 is connected with port 2 or eth2 with port 1",
        ),
        ({"arrived_at": {1: 2, 2: None}, "came_out_at": {1: set(), 2: {1}}}, "swapped ports: eth1"),
        ({"arrived_at": {1: None, 2: None}, "came_out_at": {1: {2}, 2: set()}}, "swapped ports: eth1"),
        (
            {"arrived_at": {1: 3, 2: 2}, "came_out_at": {1: set(), 2: {2}}},
            "wrong port: eth1 is connected with port 3",
        ),
        ({"arrived_at": {1: 1, 2: None}, "came_out_at": {1: {1}, 2: set()}}, "no link: eth2 and port 2"),
        (
            {"came_out_at": {1: set(), 2: {2}}},
            "one-way link: frames get from eth1 to port 1 but not back; check the cable of port 1",
        ),
        (
            {"arrived_at": {1: None, 2: 2}},
            "one-way link: frames get from port 1 to eth1 but not back; check the cable of port 1",
        ),
        (
            {"came_out_at": {1: {1}, 2: set()}, "taps_at_exit": set()},
            "one-way link: frames get from eth2 to port 2 but not back; check the cable of port 2",
        ),
        ({"taps_at_entrance": set()}, "missing tap: tap1 sees nothing of what eth1 sends to port 1"),
        ({"taps_at_exit": set()}, "missing tap: tap2 sees nothing of what port 2 sends to eth2"),
        ({"taps_at_entrance": {2}, "taps_at_exit": {1}}, "swapped taps: tap1 sees what leaves port 2, tap2"),
    ],
)
def test_a_wrong_wiring_is_said_in_one_line(changes: dict[str, object], said: str) -> None:
    line = diagnose(WIRING, replace(RIGHT, **changes))
    assert line is not None
    assert line.startswith(said)
    assert "\n" not in line


def test_without_a_connection_nothing_else_is_said() -> None:
    line = diagnose(WIRING, NOTHING)
    assert line is not None
    assert line.startswith("no controller connection")
