"""A Linux bridge behind filters of tc, as a subject of the campaign."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from loko_testbed.instruments.programs import run
from loko_testbed.live.cores import CorePlan
from loko_testbed.measure.bench.software_switches.ports import PortInstruments, SwitchPorts, near
from loko_testbed.measure.bench.software_switches.tc_table import TcTable
from loko_testbed.measure.predictability.subject import (
    SWITCH,
    FrameStream,
    OpenSwitch,
    StreamTimes,
    SwitchUnderTest,
)


class LinuxBridge:
    """The bridge, its filters, and its ports."""

    def __init__(self, table: TcTable, ports: SwitchPorts) -> None:
        self._table = table
        self._ports = ports

    def fresh(self, cables: Mapping[int, int]) -> OpenSwitch:
        """See `HtbSwitch.fresh`."""
        self._table.clear()
        self._ports.cabled(cables)
        return self

    def longest_pause_ns(self) -> int:
        """See `HtbSwitch.longest_pause_ns`."""
        return self._ports.longest_pause_ns()

    @property
    def remark(self) -> str:
        """See `HtbSwitch.remark`."""
        if self._table.has_flower:
            return "its filters are those of flower"
        return "its filters are those of u32: this kernel has no classifier flower (module cls_flower)"

    def now_ns(self) -> int:
        """See `OpenSwitch.now_ns`."""
        return time.monotonic_ns()

    def control(
        self,
        board: str,
        segments: Sequence[bytes],
        *,
        spacing_ns: int = 10_000_000,
        await_reply: bool = False,
    ) -> list[bytes]:
        """See `OpenSwitch.control`. Each message is carried out at once, so no reply has to be awaited."""
        del board, await_reply
        if not spacing_ns:
            return self._table.execute(b"".join(segments))
        replies = []
        for segment in segments:
            until_ns = time.monotonic_ns() + spacing_ns
            replies += self._table.execute(segment)
            time.sleep(max(0, until_ns - time.monotonic_ns()) / 1e9)
        return replies

    def send(self, streams: Sequence[FrameStream], *, drain_ns: int) -> list[StreamTimes]:
        """See `OpenSwitch.send`."""
        return self._ports.send(streams, drain_ns=drain_ns)


@contextmanager
def linux_bridge(subject: SwitchUnderTest, folder: Path) -> Iterator[LinuxBridge]:
    """Set up a bridge in this thread's network. Raises `RunError`.

    It learns and floods nothing, so that only the filters forward, as an OpenFlow switch does by its entries.
    """
    del folder
    what = "the bridge"
    run(["ip", "link", "add", SWITCH, "type", "bridge"], what=what)
    interfaces = [near(port) for port in range(1, subject.ports + 1)]
    for interface in interfaces:
        run(["ip", "link", "set", interface, "master", SWITCH], what=what)
        quiet = ["learning", "off", "flood", "off", "mcast_flood", "off", "bcast_flood", "off"]
        run(["ip", "link", "set", interface, "type", "bridge_slave", *quiet], what=what)
    run(["ip", "link", "set", SWITCH, "up"], what=what)
    # It forwards within the call that sends a frame, so it waits for no core of its own.
    core = min(CorePlan.here().others)
    instruments = PortInstruments(core=core, switch_core=core, waited_ns=int)
    with closing(SwitchPorts(subject, instruments)) as ports:
        yield LinuxBridge(TcTable(interfaces), ports)
