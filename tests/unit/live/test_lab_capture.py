"""Captures of a live lab: frames in order, sessions told apart, and comments; and what is refused."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import dpkt
import pytest
from typer.testing import CliRunner

from loko.control.framing import framed
from loko.document import LABS
from loko.topology.frame import frame_of
from loko.topology.lab import Endpoint, load_lab
from loko.topology.requests import load_flows
from loko_testbed.cli.main import app
from loko_testbed.live.confinement import SCRATCH
from loko_testbed.live.lab_capture.held_frames import NO_SWITCH, HeldFrames
from loko_testbed.live.lab_capture.openflow_sessions import TcpSegment
from loko_testbed.live.lab_capture.program import EmulatorLogs, LabFiles
from loko_testbed.live.messages import CONTROLLER_PORT
from loko_testbed.simulation.captures.flow_comments import KnownFlows
from loko_testbed.simulation.captures.pcapng import CapturedPacket, PcapngFile
from loko_testbed.simulation.captures.places import CapturePlace
from loko_testbed.simulation.quirks import with_quirks
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.virtual import BoardEvent

TWO_SWITCH = load_lab("two-switch")
FLOWS = load_flows(LABS / "two-switch/flows.yml")
H1, S1_1 = Endpoint(node="H1", port=1), Endpoint(node="s1", port=1)
HELD_NS = 200_000_000


def segment(port: int, *, is_from_switch: bool, data: bytes = b"", flags: int = 0x10) -> bytes:
    """Return a segment between a switch at a port and a controller."""
    ends = (port, CONTROLLER_PORT) if is_from_switch else (CONTROLLER_PORT, port)
    options = bytes([1, 1, 1, 0])
    tcp = dpkt.tcp.TCP(sport=ends[0], dport=ends[1], flags=flags, off=6, data=data, opts=options)
    here = bytes([127, 0, 0, 1])
    ip = dpkt.ip.IP(src=here, dst=here, p=dpkt.ip.IP_PROTO_TCP, data=tcp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=bytes(6), dst=bytes(6), data=ip)) + bytes(3)


def introduction(name: str, *, xid: int = 1) -> bytes:
    """Return the FEATURES_REPLY of a switch."""
    return framed(1, 6, xid, struct.pack("!Q16x", TWO_SWITCH.switches[name].datapath_id))


def released(held: HeldFrames, now_ns: int | None = None) -> list[tuple[CapturePlace, int, bool, str]]:
    return [(place, each.at_ns, each.is_outbound, each.comment) for place, each in held.release(now_ns)]


def test_a_frame_is_at_both_ends_of_its_cable_with_flow_and_guarantee() -> None:
    held = HeldFrames(TWO_SWITCH)
    flow = FLOWS[0]
    frame = frame_of(TWO_SWITCH, flow)
    held.flows = KnownFlows.guaranteed(TWO_SWITCH, [(flow, 4_366_520.0)])
    held.passed(1_000, H1, S1_1, frame)
    held.passed(900, S1_1, H1, bytes(60))
    said = f"flow {flow.id}, guarantee 4.366520 ms"
    assert released(held) == [
        (("s1", "s1:1"), 900, True, ""),
        (("H1", "H1-eth0"), 900, False, ""),
        (("H1", "H1-eth0"), 1_000, True, said),
        (("s1", "s1:1"), 1_000, False, said),
    ]


def test_frames_are_held_until_all_taps_are_read_and_come_out_in_order() -> None:
    held = HeldFrames(TWO_SWITCH)
    for at_ns in (3_000, 1_000, HELD_NS, 2_000):
        held.passed(at_ns, H1, S1_1, bytes(60))
    assert [at_ns for _, at_ns, *_ in released(held, HELD_NS + 2_500)] == [1_000, 1_000, 2_000, 2_000]
    held.passed(2_700, H1, S1_1, bytes(60))
    assert [at_ns for _, at_ns, *_ in released(held)] == [2_700] * 2 + [3_000] * 2 + [HELD_NS] * 2


def test_sessions_are_told_apart_by_the_datapath_ids_of_the_switches() -> None:
    held = HeldFrames(TWO_SWITCH)
    for at_ns, port, name in ((1, 40_001, "s2"), (2, 40_002, "s1")):
        held.passed_loopback(at_ns, segment(port, is_from_switch=True, flags=2))
        held.passed_loopback(at_ns + 10, segment(port, is_from_switch=False, data=framed(1, 5, 1)))
        held.passed_loopback(at_ns + 20, segment(port, is_from_switch=True, data=introduction(name)))
    held.passed_loopback(50, frame_of(TWO_SWITCH, FLOWS[0]))
    places = [(place, at_ns, is_outbound) for place, at_ns, is_outbound, _ in released(held)]
    of_s1, of_s2 = ("s1", "s1:openflow"), ("s2", "s2:openflow")
    assert places == [
        (of_s2, 1, True),
        (of_s1, 2, True),
        (of_s2, 11, False),
        (of_s1, 12, False),
        (of_s2, 21, True),
        (of_s1, 22, True),
    ]


def test_a_connection_without_introduction_belongs_to_no_switch_and_its_port_may_be_used_again() -> None:
    held = HeldFrames(TWO_SWITCH)
    opening = segment(40_001, is_from_switch=True, flags=2)
    held.passed_loopback(1, opening)
    assert [place for place, *_ in released(held)] == [NO_SWITCH]
    held.passed_loopback(2, segment(40_001, is_from_switch=True, data=introduction("s1")))
    held.passed_loopback(3, opening)
    assert [place for place, *_ in released(held)] == [("s1", "s1:openflow"), NO_SWITCH]


def test_quirks_of_replies_are_named_as_far_as_the_board_has_them() -> None:
    without = with_quirks(TWO_SWITCH, {"without": ["random-port-addresses"]})
    said = {}
    for lab in (TWO_SWITCH, without):
        held = HeldFrames(lab)
        held.passed_loopback(1, segment(40_001, is_from_switch=True, data=introduction("s1")))
        [(_, _, _, said[lab.path, lab is without])] = released(held)
    assert sorted(said.values()) == ["", "addresses of ports are new in every reply (quirk 19)"]


def test_what_a_board_reports_is_at_the_request_and_its_reply_or_at_the_frame() -> None:
    held = HeldFrames(TWO_SWITCH)
    held.passed_loopback(1, segment(40_001, is_from_switch=True, data=introduction("s1")))
    held.passed_loopback(1_000, segment(40_001, is_from_switch=False, data=framed(1, 2, 7, b"abcd")))
    held.passed_loopback(2_000, segment(40_001, is_from_switch=True, data=framed(1, 3, 7)))
    held.passed(3_000, H1, S1_1, bytes(12) + b"\x88\xcc" + bytes(46))
    echo = BoardEvent(1_500, "s1", "message of type 2: answered without its payload (quirk 5)")
    frame = BoardEvent(3_500, "s1", "a frame of type 0x88cc goes to the controller (quirk 61)")
    for event in (echo, frame, BoardEvent(3_600, "s1", "connected")):
        held.reported(event)
    comments = {(place.interface, at_ns): comment for place, at_ns, _, comment in released(held)}
    assert comments["s1:openflow", 1_000] == comments["s1:openflow", 2_000] == echo.text
    assert comments["s1:1", 3_000] == frame.text
    assert comments["H1-eth0", 3_000] == ""


def test_what_a_tap_missed_is_told_at_its_next_frame() -> None:
    held = HeldFrames(TWO_SWITCH)
    held.missed(S1_1, 7)
    held.missed(S1_1, 2)
    for at_ns in (1, 2):
        held.passed(at_ns, H1, S1_1, bytes(60))
    missed = "9 frames before it were missed: the machine is too busy"
    assert [comment for place, *_, comment in released(held) if place.file == "s1"] == [missed, ""]


@pytest.mark.parametrize("length", range(0, 80, 7))
def test_a_cut_frame_is_no_segment(length: int) -> None:
    whole = segment(40_001, is_from_switch=True, data=framed(1, 0, 1))
    assert TcpSegment.parse(whole[:length], CONTROLLER_PORT) is None or length >= 58
    assert TcpSegment.parse(whole, CONTROLLER_PORT + 1) is None
    parsed = TcpSegment.parse(whole, CONTROLLER_PORT)
    assert parsed is not None
    assert parsed.payload == framed(1, 0, 1)


def test_an_emulators_log_is_read_line_by_line_as_it_grows(tmp_path: Path) -> None:
    logs = EmulatorLogs(tmp_path)
    assert list(logs.events()) == []
    log = tmp_path / "emulator-0/boards.log"
    log.parent.mkdir()
    log.write_text("2026-11-30T08:00:00.000001Z s1: connected\nno such line\n2026-11-30T08:00:01.5")
    assert list(logs.events()) == [BoardEvent(1_796_025_600_000_001_000, "s1", "connected")]
    with log.open("a") as file:
        file.write("00000Z s2: a frame (quirk 61)\n")
    assert list(logs.events()) == [BoardEvent(1_796_025_601_500_000_000, "s2", "a frame (quirk 61)")]
    assert list(logs.events()) == []


def packet(data: bytes = bytes(60)) -> CapturedPacket:
    return CapturedPacket(1_000, 0, is_outbound=False, data=data, comment="")


def test_capturing_ends_at_the_limit_and_files_are_whole(tmp_path: Path) -> None:
    ends = [CapturePlace("s1", "s1:1"), CapturePlace("H1", "H1:1")]
    files = LabFiles(tmp_path, 1_000, iter(ends))
    with pytest.raises(RunError, match=rf"--pcap-limit: the files in {tmp_path} have reached 0 MB"):
        files.write((end, packet()) for _ in range(100) for end in ends)
    files.close()
    for end in ends:
        with (tmp_path / f"{end.file}.pcapng").open("rb") as file:
            assert len([data for _, data in dpkt.pcapng.Reader(file)]) == 100


def test_a_full_disk_leaves_whole_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s1.pcapng"
    written = PcapngFile(path, ["s1:1"])
    written.append([packet(b"a" * 60)])
    raw = written._file

    class FullDisk:
        """A disk that takes half of what is written, and then nothing."""

        truncate = staticmethod(raw.truncate)
        left = 40

        def write(self, data: memoryview) -> int:
            if not self.left:
                raise OSError(28, os.strerror(28))
            taken = raw.write(data[: self.left])
            self.left = 0
            return taken

    monkeypatch.setattr(written, "_file", FullDisk())
    with pytest.raises(OSError, match="No space left"):
        written.append([packet(b"b" * 60)])
    raw.close()
    with path.open("rb") as file:
        assert [data for _, data in dpkt.pcapng.Reader(file)] == [b"a" * 60]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--builder", "containerlab"), "--pcap: the ports of containers are not captured"),
        (
            ("--cabling", str(LABS / "two-switch/one-real-board.yml")),
            "--pcap: the ports of real boards (s1) are not captured; leave it out",
        ),
    ],
)
def test_what_cannot_be_captured_is_refused_in_a_line(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    answer = CliRunner().invoke(app, ["lab", "up", "two-switch", "--pcap", str(tmp_path / "new"), *words])
    assert (answer.exit_code, says in answer.stderr) == (2, True), answer.output
    assert not (tmp_path / "new").exists()


def test_a_folder_that_only_the_lab_would_see_is_refused() -> None:
    folder = SCRATCH / "captures-of-a-test"
    answer = CliRunner().invoke(app, ["lab", "up", "two-switch", "--pcap", str(folder)])
    assert answer.exit_code == 2
    assert f"--pcap {folder}: a lab has a {SCRATCH} of its own; choose a folder elsewhere" in answer.stderr
    assert not folder.exists()
