"""Inventories are strict documents; every wrong one is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko.document import InputError
from loko_testbed.measure.bench.inventory import (
    BENCHES,
    Hardware,
    InventoryBoard,
    SoftwareSwitch,
    load_inventory,
)

HARDWARE = (BENCHES / "zodiac-fx.yml").read_text(encoding="utf-8")


def test_the_examples_are_in_order() -> None:
    assert isinstance(load_inventory("zodiac-fx-live"), InventoryBoard)
    assert isinstance(load_inventory("openvswitch"), SoftwareSwitch)
    hardware = load_inventory("zodiac-fx")
    assert isinstance(hardware, Hardware)
    assert hardware.ports[1].passive
    assert (hardware.controller.address, hardware.controller.port) == ("10.0.1.8", 6633)
    assert not hardware.controller.passive
    assert hardware.link.wire().time_ns(1) == 80


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: hardware", "kind: zebra", "'zebra'"),
        ("kind: hardware\n", "", "discriminator 'kind'"),
        ("  2:\n", "  3:\n", "the bench needs ports 1 and 2 and no others"),
        ("enp3s0f1", "enp3s0f0", "interface enp3s0f0 is named for two ends"),
        ("10.0.1.8:6633", "10.0.1.8", "'10.0.1.8' is no address and port"),
        ("10.0.1.8:6633", "10.0.1.8:99999", "'10.0.1.8:99999' is no address and port"),
        ("10.0.1.8:6633", "10.0.1.800:6633", "10.0.1.800"),
        ('"000070b3d56c0001"', '"1"', "'1' is no datapath id: write 16 hexadecimal digits"),
        ("enp5s0 ", '"a name" ', "'a name' is no name of a network interface"),
        ("    tap:", "    taps:", "unknown key 'taps'"),
    ],
)
def test_a_wrong_inventory_is_refused_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "dut.yml"
    assert old in HARDWARE
    path.write_text(HARDWARE.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_inventory(path)
    assert str(error.value).startswith(f"{path}")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_inventory_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"names: openvswitch, zodiac-fx, zodiac-fx-live"):
        load_inventory("zodiak")
