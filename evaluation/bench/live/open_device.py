"""From an inventory to a switch under test: what the bench builds, starts, and ends again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evaluation.bench.inventory import Emulator, Entry, Hardware, load_inventory
from evaluation.bench.live.bench import CONNECT_S, Bench
from evaluation.bench.live.emulated_board import emulated_board
from evaluation.bench.live.hardware_switch import hardware_switch
from evaluation.bench.live.live_device import LiveDevice
from evaluation.bench.live.pacing import unlimited_realtime
from evaluation.bench.live.self_test import self_test
from evaluation.bench.live.software_switch import software_switch
from evaluation.live.exclusion import claim


@contextmanager
def open_device(name_or_path: str | Path) -> Iterator[LiveDevice]:
    """The switch of an inventory, connected, its wiring tested, with an empty table.

    Raises `InputError` or `RunError` in one line.
    """
    with open_bench(load_inventory(name_or_path)) as bench:
        self_test(bench, connect_s=CONNECT_S)
        yield bench.device


@contextmanager
def open_bench(entry: Entry) -> Iterator[Bench]:
    """What an inventory describes, with the instruments in place; the switch has not connected yet."""
    with ExitStack() as stack:
        stack.enter_context(claim())
        stack.enter_context(unlimited_realtime())
        if isinstance(entry, Hardware):
            yield stack.enter_context(hardware_switch(entry))
            return
        folder = Path(tempfile.mkdtemp(prefix="loko-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if isinstance(entry, Emulator):
            yield stack.enter_context(emulated_board(entry, folder))
        else:
            yield stack.enter_context(software_switch(entry, folder))
