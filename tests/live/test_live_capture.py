"""Captures of a lab that is up: `loko lab up --pcap`, read while it runs, after its end, and after a kill."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import dpkt
import pytest
import typer
from live_harness import needs_namespaces, wait_until
from tshark import Dissected, dissected, needs_tshark
from typer.testing import CliRunner

from loko.document import LABS
from loko.switch_model.flow import dump_flows
from loko.topology.lab import load_lab
from loko.topology.requests import load_flows
from loko_testbed.cli.lab import lab_app
from loko_testbed.live import background
from loko_testbed.live.background import BackgroundLab

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]

FLOW = load_flows(LABS / "two-switch/flows.yml")[0]
FRAMES = 5
COMMENT = re.compile(rf"flow {FLOW.id}, guarantee \d+\.\d{{6}} ms")
SEND = """
import socket, sys, time
source, address, port, count = sys.argv[1:]
opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
opened.bind(("", int(source)))
for number in range(int(count)):
    opened.sendto(bytes(260), (address, int(port)))
    time.sleep(0.02)
"""

app = typer.Typer()
app.add_typer(lab_app, name="lab")


def command(*words: object) -> str:
    answer = CliRunner().invoke(app, ["lab", *map(str, words)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def send(lab: str) -> None:
    """Have the source of the flow send it."""
    address = load_lab("two-switch").hosts[FLOW.destination].ip.ip
    words = (FLOW.udp_source, address, FLOW.udp_destination, FRAMES)
    command("exec", lab, FLOW.source, sys.executable, "-c", SEND, *words)


def datagrams(path: Path) -> int:
    """Return how many UDP frames a file has; it must be whole."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        frames = [dpkt.ethernet.Ethernet(data) for _, data in dpkt.pcapng.Reader(file)]
    return sum(
        isinstance(frame.data, dpkt.ip.IP) and frame.data.p == dpkt.ip.IP_PROTO_UDP for frame in frames
    )


def of_flow(frames: list[Dissected]) -> list[Dissected]:
    return [frame for frame in frames if COMMENT.fullmatch(frame.comment)]


@needs_tshark
def test_a_lab_is_captured_at_each_port_and_session_while_it_runs(relaxed: object, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    before_ns = time.time_ns()
    try:
        said = command("up", "two-switch", "--relaxed", "--pcap", folder)
        assert f"captures: in {folder}\n" in said
        send("two-switch")
        at_receiver = folder / f"{FLOW.destination}.pcapng"
        wait_until(lambda: datagrams(at_receiver) == FRAMES, "all frames are in the receiver's file")
        [view] = json.loads(command("status", "two-switch", "--json"))
        assert view["status"]["captures"] == f"in {folder}"
    finally:
        command("down", "two-switch")
    files = {path.stem: dissected(path) for path in folder.iterdir()}
    assert files.keys() == {"s1", "s2", FLOW.source, FLOW.destination}
    for name, ports in (("s1", {"s1:1", "s1:3"}), ("s2", {"s2:1", "s2:3"})):
        frames = files[name]
        assert [frame.at_ns for frame in frames] == sorted(frame.at_ns for frame in frames)
        assert {frame.interface for frame in of_flow(frames)} == ports
        session = [frame for frame in frames if frame.interface == f"{name}:openflow"]
        assert sum(frame.is_openflow for frame in session) > 4
        assert [frame for frame in session if frame.warnings and "quirk" not in frame.comment] == []
    assert {name: len(of_flow(frames)) for name, frames in files.items()} == {
        **{"s1": 2 * FRAMES, "s2": 2 * FRAMES},
        **{FLOW.source: FRAMES, FLOW.destination: FRAMES},
    }
    first, last = of_flow(files[FLOW.source])[0], of_flow(files[FLOW.destination])[0]
    assert before_ns < first.at_ns < last.at_ns < time.time_ns()


def test_what_was_captured_is_whole_after_a_kill_and_up_to_the_end_after_down(
    relaxed: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_CAPTURE_TIMEOUT_S", 10_000)  # longer than a test may take
    for ending in ("kill", "down"):
        folder = tmp_path / ending
        try:
            command("up", "two-switch", "--relaxed", "--pcap", folder)
            send("two-switch")
            lab = BackgroundLab.find("two-switch")
            assert lab is not None
            at_sender = folder / f"{FLOW.source}.pcapng"
            if ending == "kill":
                wait_until(lambda path=at_sender: datagrams(path) == FRAMES, "the sender's frames are there")
                outermost = lab.process()
                assert outermost is not None
                outermost.kill()
                outermost.wait(timeout=60)
        finally:
            command("down", "two-switch")
        assert datagrams(at_sender) == FRAMES
        assert datagrams(folder / "s1.pcapng") >= FRAMES


@needs_tshark
def test_sessions_over_a_control_network_are_at_the_control_ports(relaxed: object, tmp_path: Path) -> None:
    lab = tmp_path / "wired/lab.yml"
    lab.parent.mkdir()
    text = (LABS / "two-switch/lab.yml").read_text().replace("name: two-switch", "name: wired")
    lab.write_text(text.replace("control: session", "control: network"))
    flows = tmp_path / "flows.json"
    flows.write_text(json.dumps(dump_flows([FLOW])))
    folder = tmp_path / "captures"
    try:
        command("up", lab.parent, "--relaxed", "--flows", flows, "--pcap", folder)
    finally:
        command("down", "wired")
    interfaces = {}
    for path in folder.iterdir():
        spoken = [frame for frame in dissected(path) if frame.is_openflow]
        interfaces[path.stem] = {frame.interface for frame in spoken}
        if path.stem != "controller":
            assert [frame for frame in spoken if frame.warnings and "quirk" not in frame.comment] == []
    assert interfaces == {
        "s1": {"s1:4"},
        "s2": {"s2:4"},
        "controller": {"controller:1", "controller:2"},
    }


def test_capturing_that_ends_at_its_limit_says_so_and_the_lab_goes_on(
    relaxed: object, tmp_path: Path
) -> None:
    folder = tmp_path / "captures"
    burst = "import socket; opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    burst += "for _ in range(2000): opened.sendto(bytes(1000), ('10.0.0.3', 9))"
    try:
        command("up", "two-switch", "--relaxed", "--pcap", folder, "--pcap-limit", 1)
        command("exec", "two-switch", "H1", sys.executable, "-c", burst)
        ended = f"--pcap-limit: the files in {folder} have reached 1 MB"
        wait_until(lambda: ended in command("status", "two-switch", "--json"), "capturing has ended")
        [view] = json.loads(command("status", "two-switch", "--json"))
        assert view["status"]["connected"] == 2
    finally:
        command("down", "two-switch")
    assert datagrams(folder / "H1.pcapng") > 100
