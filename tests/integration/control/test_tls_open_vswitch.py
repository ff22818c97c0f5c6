"""Open vSwitch connects by TLS, and its table is restored when somebody changes it."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver_and_board import MARK, V1_0
from test_tls_switches import Authority, carry_out, wait_for

from loko.control.dialect import OPEN_VSWITCH
from loko.control.driver import Driver
from loko.control.notices import Diagnostic
from loko_testbed.live.datapaths import Datapath
from loko_testbed.live.openvswitch import SCHEMA, OpenVSwitch

DUMMY = Datapath(kind="dummy", options=("--enable-dummy",))
"""A datapath without interfaces: needs neither root nor a namespace."""
COMPARE_NS = 1_000_000_000
ENTRIES = 30
pytestmark = pytest.mark.skipif(not SCHEMA.is_file(), reason="Open vSwitch is not installed")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as path:  # a short path: sockets are in it
        yield Path(path)


def ofctl(folder: Path, *words: str) -> str:
    command = ["ovs-ofctl", "-O", "OpenFlow10", *words[:-1], f"unix:{folder}/br0.mgmt", words[-1]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_open_vswitch_connects_by_tls_and_its_table_is_restored(folder: Path) -> None:
    authority = Authority(folder)
    certificate, key = authority.sign("s1.example")
    driver = Driver(capacity=128, own_mark=MARK, dialect=OPEN_VSWITCH, compare_ns=COMPARE_NS)
    entries = [V1_0.entry(number) for number in range(ENTRIES)]
    for entry in entries:
        driver.ensure(entry)
    notes: list[str] = []

    async def scenario(board, switches, plain, tls):
        def is_kept() -> bool:
            """Let the driver keep the table. Return whether that is as it should be."""
            now_ns = time.monotonic_ns()
            segments = [] if connected else driver.connected(now_ns)
            connected.append(True)
            replies, switches.replies = switches.replies, []
            for reply in replies:
                segments += driver.reply(now_ns, reply)
            for segment in [*segments, *driver.poll(now_ns)]:
                board.send("s1", segment)
            notes.extend(
                note.text for note in driver.notices() if isinstance(note, Diagnostic) and note.warning
            )
            return driver.complete

        connected: list[bool] = []
        switch = OpenVSwitch(folder, datapath=DUMMY)
        try:
            command = ["ovs-vsctl", f"--db=unix:{folder}/db.sock", "set-ssl", key, certificate]
            command += [authority.certificate, "--", "add-br", "br0", "--", "set", "bridge", "br0"]
            command += ["datapath_type=dummy", "protocols=OpenFlow10", "fail_mode=secure"]
            command += ["other_config:datapath-id=0000000000000001", "--", "set-controller", "br0"]
            subprocess.run([*map(str, command), f"ssl:127.0.0.1:{tls[1]}"], check=True, capture_output=True)
            await wait_for(lambda: switches.connected == ["s1"], "the switch")
            await wait_for(is_kept, "the table")
            listed = ofctl(folder, "--no-stats", "dump-flows", "")
            assert listed.count("cookie=0x4c6f") == ENTRIES
            one = "cookie=0x4c6f000000000007/-1,udp"
            ofctl(folder, "mod-flows", f"{one},actions=output:2")
            ofctl(folder, "del-flows", "cookie=0x4c6f000000000009/-1,udp")
            ofctl(folder, "add-flow", "cookie=0x4c6f000000000063,priority=7,udp,actions=flood")
            assert ofctl(folder, "--no-stats", "dump-flows", "") != listed
            await wait_for(
                lambda: (
                    is_kept()
                    and sorted(ofctl(folder, "--no-stats", "dump-flows", "").splitlines())
                    == sorted(listed.splitlines())
                ),
                "the table as it was",
            )
            assert sum("not as it was made" in note for note in notes) == 2
            assert sum("vanished" in note for note in notes) == 1
        finally:
            switch.close()

    carry_out(authority, "os-ken", scenario)
