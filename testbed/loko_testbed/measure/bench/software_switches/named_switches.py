"""Software switches by name, opened as subjects of the campaign in a network of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from loko_testbed.instruments.network_namespace import own_network
from loko_testbed.live.exclusion import claim
from loko_testbed.live.permission import require_namespaces
from loko_testbed.measure.bench.live.open_device import bench_files
from loko_testbed.measure.bench.live.pacing import unlimited_realtime
from loko_testbed.measure.bench.software_switches.linux_bridge import linux_bridge
from loko_testbed.measure.bench.software_switches.open_vswitch import (
    open_vswitch,
    open_vswitch_dpdk,
    open_vswitch_kernel,
)
from loko_testbed.measure.bench.software_switches.ports import QUEUES, pairs
from loko_testbed.measure.predictability.campaign import CampaignSize
from loko_testbed.measure.predictability.subject import LiveSwitch, Pace, SwitchUnderTest

LINE_RATE_BPS: Final = 10_000_000
"""Rate of the lines. Two sources of the shortest frames are then as much as a Python program sends."""
PORTS: Final = 8
"""As many as BM needs."""
PACE: Final = Pace(
    entry_gap_ns=0,
    settles_ns=200_000_000,
    fill_s=10,
    probe_gap_ns=200_000,
    slow_probe_gap_ns=2_000_000,
    software_mbps=5,
    pauses=10,
    shortest_slots=600,
    longest_slots=9_600,
    drain_slots=1_000,
    rate_resolution=0.02,
)
SIZE: Final = CampaignSize(
    packets=2_000,
    bursts=200,
    snake_packets=5_000,
    most_entries=2_000,
    aging_runs=3,
    alternating_runs=6,
)
QUICK_SIZE: Final = replace(
    SIZE,
    packets=200,
    bursts=40,
    snake_packets=200,
    congested_ports=1,
    congested_queues=2,
    most_entries=200,
    aging_runs=2,
    alternating_runs=2,
    table_sizes=False,
)
_SWITCHES: Final[dict[str, Callable[[SwitchUnderTest, Path], AbstractContextManager[LiveSwitch]]]] = {
    "open-vswitch": open_vswitch,
    "open-vswitch-dpdk": open_vswitch_dpdk,
    "open-vswitch-kernel": open_vswitch_kernel,
    "linux-bridge": linux_bridge,
}
NAMES: Final = tuple(_SWITCHES)
TITLES: Final = {
    "open-vswitch": "Open vSwitch, datapath in user space",
    "open-vswitch-dpdk": "Open vSwitch with DPDK",
    "open-vswitch-kernel": "Open vSwitch, datapath in the kernel",
    "linux-bridge": "Linux bridge with filters of tc",
}


def outline(name: str) -> SwitchUnderTest:
    """Return a switch as the campaign sees it before it runs."""
    return SwitchUnderTest(
        device=name, ports=PORTS, queues=QUEUES, link_rate_bps=LINE_RATE_BPS, is_software=True, pace=PACE
    )


@contextmanager
def open_switch(name: str) -> Iterator[SwitchUnderTest]:
    """Run a software switch in a network of its own, ready to be measured. Raises `RunError`."""
    require_namespaces()
    subject = outline(name)
    with ExitStack() as stack:
        stack.enter_context(claim())
        stack.enter_context(unlimited_realtime())
        folder = stack.enter_context(bench_files())
        stack.enter_context(own_network(pairs(PORTS)))
        switch = stack.enter_context(_SWITCHES[name](subject, folder))
        yield replace(subject, live=switch)
