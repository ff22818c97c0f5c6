"""The switch that a command measures: a board in virtual time, or one that an inventory describes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loko.switch_model.device import profile_file
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.inventory import Inventory, InventoryBoard, load_inventory
from loko_testbed.measure.bench.simulated_switch import KIND, SimulatedSwitch
from loko_testbed.measure.bench.virtual import VirtualDevice

_INVENTORIES: Final = {".yml", ".yaml"}
_FORM: Final = "zodiac-fx"
"""The profile that provides the cost model for measuring a switch that has no profile."""


Values = dict[str, Any]


def form_of(name_or_path: str) -> Values:
    """Return the values of a profile as they stand in its file. Raises `InputError`."""
    return tomllib.loads(profile_file(name_or_path).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A switch to be measured."""

    name: str
    form: str
    """The profile whose form the measured one takes."""
    identity: dict[str, Any]
    """The profile or the inventory, on which the samples depend."""
    inventory: Inventory | None
    """The inventory that describes the switch in real time; None in virtual time."""
    is_simulated: bool = False
    """Whether it is a simulated switch of another kind than the board."""

    @contextmanager
    def open(self, seed: int) -> Iterator[BenchDevice]:
        """Open the switch, ready to be measured. Raises `InputError` or `RunError`."""
        if self.inventory is None:
            yield virtual_device(self.form, seed=seed)
            return
        from loko_testbed.measure.bench.live.open_device import open_device  # noqa: PLC0415 - Linux only, needs root

        with open_device(self.name) as device:
            yield device


def choose(device: str) -> DeviceChoice:
    """Find a switch by a profile's name or path, or by an inventory's path. Raises `InputError`."""
    if Path(device).suffix in _INVENTORIES:
        inventory = load_inventory(device)
        form = inventory.profile if isinstance(inventory, InventoryBoard) else _FORM
        return DeviceChoice(device, form, {"inventory": inventory.model_dump(mode="json")}, inventory)
    values = form_of(device)
    return DeviceChoice(device, device, {"profile": values}, None, is_simulated=values.get("kind") == KIND)


def virtual_device(form: str, *, seed: int) -> BenchDevice:
    """Return the switch of a profile in virtual time. Raises `InputError`."""
    if form_of(form).get("kind") == KIND:
        return SimulatedSwitch(form, seed=seed)
    return VirtualDevice(form, seed=seed)
