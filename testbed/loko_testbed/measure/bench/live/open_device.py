"""Opens the switch of an inventory: builds and starts what the bench needs, and ends it again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loko_testbed.live.exclusion import claim
from loko_testbed.live.state import state_folder
from loko_testbed.measure.bench.inventory import Hardware, Inventory, InventoryBoard, load_inventory
from loko_testbed.measure.bench.live.bench import CONNECT_S, Bench
from loko_testbed.measure.bench.live.emulated_board import emulated_board
from loko_testbed.measure.bench.live.hardware_switch import hardware_switch
from loko_testbed.measure.bench.live.live_device import LiveDevice
from loko_testbed.measure.bench.live.pacing import unlimited_realtime
from loko_testbed.measure.bench.live.self_test import self_test
from loko_testbed.measure.bench.live.software_switch import software_switch
from loko_testbed.simulation.runner import RunError


@contextmanager
def open_device(name_or_path: str | Path) -> Iterator[LiveDevice]:
    """Open the switch of an inventory: connected, its wiring checked, its table empty.

    Raises `InputError` or `RunError` in one line.
    """
    with open_bench(load_inventory(name_or_path)) as bench:
        self_test(bench, connect_s=CONNECT_S)
        yield bench.device


@contextmanager
def open_bench(inventory: Inventory) -> Iterator[Bench]:
    """Set up what an inventory describes, with the instruments. The switch has not connected yet."""
    with ExitStack() as stack:
        stack.enter_context(claim())
        stack.enter_context(unlimited_realtime())
        if isinstance(inventory, Hardware):
            yield stack.enter_context(hardware_switch(inventory))
            return
        folder = stack.enter_context(bench_files())
        if isinstance(inventory, InventoryBoard):
            yield stack.enter_context(emulated_board(inventory, folder))
        else:
            yield stack.enter_context(software_switch(inventory, folder))


@contextmanager
def bench_files() -> Iterator[Path]:
    """Provide an empty folder for configuration, logs and sockets. Only one bench runs at a time."""
    folder = state_folder() / "bench"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror}): run it as root") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
