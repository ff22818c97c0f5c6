"""A host's source, by the page's own commands: a schedule's file, and frames that carry their times."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from live_harness import needs_namespaces
from served_lab import LOKO, TIMEOUT_S

from loko.schedule.sources import slots_file
from loko.schedule.timed_flow import TimedFlow
from loko.topology.frame import frame_of
from loko.topology.lab import load_lab
from loko_testbed.instruments.emulator import emulator

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tssdn.md"
FLOW = (
    "- {id: a, source: H1, destination: H3, udp_source: 1001, udp_destination: 5001, frame: 306 bytes,"
    " period: 20 ms}"
)
HOST = """
    ip link add H1-eth0 type veth peer name far
    ip address add 10.0.0.1/16 dev H1-eth0
    ip link set H1-eth0 up
    ip link set far up
    ip neighbour add 10.0.0.3 lladdr 02:00:00:00:00:03 dev H1-eth0
"""


def sent_by(script: str, folder: Path) -> tuple[dict[str, Any], int]:
    """Return the source's final report, and the number of frames received at the far end of its cable."""
    done = subprocess.run(
        ["unshare", "--net", "bash", "-ec", f"{HOST}{script}\nip -statistics -json link show far"],
        cwd=folder,
        env={**os.environ, "PATH": f"{emulator().parent}:{Path(LOKO).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, told, far = (json.loads(line) for line in done.stdout.splitlines() if line[0] in "{[")
    return told, far[0]["stats64"]["rx"]["packets"]


def test_the_commands_of_the_page_send_until_they_are_ended(tmp_path: Path) -> None:
    page = PAGE.read_text().split("## A source that keeps slots")[1]
    block = page.strip().split("\n\n")[0].splitlines()
    plan, send, fetch = (line.partition("#")[0].strip() for line in block)
    assert [line.split()[0] for line in (plan, send, fetch)] == ["loko", "zodiac-fx", "curl"]
    assert FLOW in PAGE.read_text()
    (tmp_path / "flows.yml").write_text(FLOW)
    told, frames = sent_by(f"{plan}\n{send} & sleep 1\nkill $!\nwait $!", tmp_path)
    late = told["late_ns"]
    assert 0 < late["count"] <= 50, "one every 20 ms"
    assert late["p50"] <= late["max"]
    assert frames >= late["count"]
    assert told["refused"] == 0


def test_frames_carry_their_times_also_where_no_queue_holds_them(tmp_path: Path) -> None:
    """Only this part of `timed-sockets` runs on a kernel without ETF, where frames leave at once."""
    lab, flow = load_lab("two-switch"), TimedFlow("a", "H1", "H3", 1001, 5001, 306, None, None)
    frame = bytearray(frame_of(lab, flow))
    frame[26:34] = bytes([10, 0, 0, 1, 10, 0, 0, 3])
    head = {"path": "timed-sockets", "period_ns": 1_000_000, "periods": 20, "watch_ns": 500_000}
    head |= {"scheduling": "other", "stall_threshold_us": 50}
    keys = {"source": "H1-eth0", "offset_ns": 0, "frame": frame.hex()}
    (tmp_path / "slots.toml").write_text(slots_file(head, [keys]))
    told, frames = sent_by("zodiac-fx slots slots.toml", tmp_path)
    assert (told["refused"], told["late_ns"]["count"]) == (0, 20)
    assert frames >= 20
