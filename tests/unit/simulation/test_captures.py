"""Captures of replays: `loko replay --pcap`, read by readers that share nothing with the writer."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpkt
import pytest
from typer.testing import CliRunner

from loko.control.framing import whole_messages
from loko.document import LABS
from loko_testbed.cli.main import app
from loko_testbed.simulation.captures.control_stream import ControlStream, Payload

FLOWS = LABS / "two-switch/flows.yml"
COMMENT = re.compile(
    r"flow (?P<flow>\S+), packet (?P<packet>\d+), guarantee (?P<guarantee>\d+\.\d{6}) ms"
    r"(, arrived after (?P<delay>\d+\.\d{6}) ms(?P<late>, LATE)?)?"
)


class Frame(NamedTuple):
    interface: str
    at_ns: int
    is_outbound: bool
    data: bytes
    comment: str


def options(body: bytes) -> dict[int, bytes]:
    """Return the options of a block, which must end with an end and have zeros as padding."""
    found = {}
    while True:
        code, length = struct.unpack_from("<HH", body)
        padded = (length + 3) // 4 * 4
        assert not any(body[4 + length : 4 + padded])
        if code == 0:
            assert (length, body[4:]) == (0, b"")
            return found
        assert code not in found
        found[code] = body[4 : 4 + length]
        body = body[4 + padded :]


def frames(path: Path) -> Iterator[Frame]:
    """Read a pcapng file as its specification says, and nothing else than what it should have."""
    data, at, names = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        body, at = data[at + 8 : at + length - 4], at + length
        if kind == 0x0A0D0D0A:
            assert struct.unpack("<IHHq", body) == (0x1A2B3C4D, 1, 0, -1)
        elif kind == 1:
            link, _, snap = struct.unpack_from("<HHI", body)
            described = options(body[8:])
            assert (link, described[9]) == (1, b"\x09")
            assert snap >= 1518
            names.append(described[2].decode())
        else:
            assert kind == 6
            interface, high, low, kept, on_wire = struct.unpack_from("<IIIII", body)
            assert kept == on_wire
            padded = (kept + 3) // 4 * 4
            assert not any(body[20 + kept : 20 + padded])
            stated = options(body[20 + padded :])
            (direction,) = struct.unpack("<I", stated[2])
            assert direction in (1, 2)
            yield Frame(
                names[interface],
                high << 32 | low,
                direction == 2,
                body[20 : 20 + kept],
                stated.get(1, b"").decode(),
            )


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, object]]]:
    """Replay with captures, and return their folder and the results."""
    folder = tmp_path_factory.mktemp("replay") / "captures"
    words = ["replay", "two-switch", str(FLOWS), "--seconds", "0.3", "--json"]
    answer = CliRunner().invoke(app, [*words, "--pcap", str(folder)])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == CliRunner().invoke(app, words).stdout
    return folder, json.loads(answer.stdout)["runs"]


@pytest.mark.parametrize("run", [1, 2])
def test_each_packet_of_a_flow_is_seen_at_every_port_with_its_guarantee(
    replayed: tuple[Path, list[dict[str, object]]], run: int
) -> None:
    folder, results = replayed
    files = {path.stem: list(frames(path)) for path in (folder / f"run-{run}").iterdir()}
    assert files.keys() == {"s1", "s2", "H1", "H2", "H3", "H4"}
    assert {frame.interface for frame in files["s1"]} == {"s1:1", "s1:2", "s1:3", "s1:openflow"}
    for seen in files.values():
        assert [frame.at_ns for frame in seen] == sorted(frame.at_ns for frame in seen)
    seen_at: Counter[str] = Counter()
    longest_ms: dict[str, float] = {}
    for name, seen in files.items():
        for frame in seen:
            if said := COMMENT.fullmatch(frame.comment):
                seen_at[said["flow"]] += 1
                assert (said["delay"] is not None) == (name.startswith("H") and not frame.is_outbound)
                assert int.from_bytes(frame.data[50:54]) == int(said["packet"])
                if said["delay"]:
                    ratio = float(said["delay"]) / float(said["guarantee"])
                    longest_ms[said["flow"]] = max(longest_ms.get(said["flow"], 0.0), ratio)
                    assert said["late"] is None
            else:
                assert frame.interface.endswith(":openflow")
    flows = results[run - 1]["flows"]
    assert isinstance(flows, list)
    # At both ends of each of three cables: from the host, between the switches, to the host.
    assert seen_at == {flow["flow"]: 6 * flow["sent"] for flow in flows}
    assert longest_ms == {flow["flow"]: pytest.approx(flow["worst"], rel=1e-5) for flow in flows}


def test_a_frame_that_leaves_a_port_reaches_the_port_at_the_other_end(
    replayed: tuple[Path, list[dict[str, object]]],
) -> None:
    folder, _ = replayed
    at = {name: list(frames(folder / f"run-1/{name}.pcapng")) for name in ("s1", "s2", "H1")}
    for here, there in ((("s1", "s1:3"), ("s2", "s2:3")), (("H1", "H1-eth0"), ("s1", "s1:1"))):
        sent, received = (
            [frame.data for frame in at[node] if frame.interface == name and frame.is_outbound is out]
            for (node, name), out in ((here, True), (there, False))
        )
        assert sent
        assert sent == received


def test_other_readers_take_the_files(replayed: tuple[Path, list[dict[str, object]]]) -> None:
    path = replayed[0] / "run-1/s1.pcapng"
    with path.open("rb") as file:
        read = [data for _, data in dpkt.pcapng.Reader(file)]
    assert read == [frame.data for frame in frames(path)]
    answer = CliRunner().invoke(
        app,
        ["bench", "analyse", str(path), "--in-interface", "s1:1", "--out-interface", "s1:3", "--json"],
    )
    assert answer.exit_code == 0, answer.output


def messages(seen: list[Frame]) -> dict[bool, bytes]:
    """Return what each end of a connection said, by whether it opened it, as an analyser finds it."""
    expected: dict[bool, int] = {}
    said = {True: b"", False: b""}
    opener = None
    for frame in seen:
        ip = dpkt.ethernet.Ethernet(frame.data).data
        tcp = ip.data
        assert {tcp.sport, tcp.dport} == {6653, 49152}
        assert tcp.sum
        whole = bytes(ip)
        ip.sum = tcp.sum = 0
        assert bytes(ip) == whole  # both checksums are as computed again
        is_opener = tcp.sport == 49152
        opener = opener or (ip.src, ip.dst)
        assert (ip.src, ip.dst) == (opener if is_opener else opener[::-1])
        if tcp.flags & dpkt.tcp.TH_SYN:
            expected[is_opener] = tcp.seq + 1
            continue
        assert tcp.seq == expected[is_opener]
        assert tcp.ack == expected[not is_opener]
        expected[is_opener] += len(tcp.data)
        said[is_opener] += tcp.data
    return said


def test_a_control_session_is_a_connection_that_analysers_follow(
    replayed: tuple[Path, list[dict[str, object]]],
) -> None:
    seen = [frame for frame in frames(replayed[0] / "run-1/s1.pcapng") if frame.interface == "s1:openflow"]
    flags = [dpkt.ethernet.Ethernet(frame.data).data.data.flags for frame in seen[:3]]
    assert flags == [dpkt.tcp.TH_SYN, dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK, dpkt.tcp.TH_ACK]
    of_board, of_controller = (whole_messages(said) for said in (messages(seen)[True], messages(seen)[False]))
    assert (of_board[1], of_controller[1]) == (b"", b"")
    board, controller = ([message[1] for message in said[0]] for said in (of_board, of_controller))
    assert board[0] == controller[0] == 0  # OFPT_HELLO
    assert controller.count(14) > 4  # OFPT_FLOW_MOD: at least the entries of the four flows
    assert board[-1] == 19  # OFPT_BARRIER_REPLY


def test_a_payload_above_a_segment_is_split_and_every_byte_counts() -> None:
    stream = ControlStream.of(
        board_mac=b"\x02" * 6,
        board_ip=b"\x0a\x00\x01\x63",
        controller_mac=b"\x06" * 6,
        controller_ip=b"\x0a\x00\x01\x08",
    )
    long, odd = bytes(range(256)) * 20, b"abc"
    payloads = [
        Payload(5, True, odd),
        Payload(7, False, long),
        Payload(7, False, odd),
        Payload(9, True, long),
    ]
    seen = [Frame("", at_ns, out, data, "") for at_ns, out, data, _ in stream.frames(payloads)]
    assert max(len(frame.data) for frame in seen) == 14 + 20 + 20 + 1460
    assert min(frame.at_ns for frame in seen) == 0
    assert messages(seen) == {True: odd + long, False: long + odd}


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    answer = CliRunner().invoke(app, ["replay", "two-switch", str(FLOWS), "--pcap", str(tmp_path)])
    assert (answer.exit_code, answer.stderr) == (
        2,
        f"error: --pcap {tmp_path}: has files already; choose a new or empty folder\n",
    )
    answer = CliRunner().invoke(app, ["replay", "two-switch", str(FLOWS), "--pcap", str(tmp_path / "mine")])
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1
    assert (tmp_path / "mine").read_text() == "kept"


def test_late_packets_say_so(tmp_path: Path) -> None:
    words = ["replay", "two-switch", str(FLOWS), "--scheme", "silo", "--seconds", "0.2", "--json"]
    answer = CliRunner().invoke(app, [*words, "--pcap", str(tmp_path)])
    assert answer.exit_code == 1, answer.output
    late = {
        said["flow"]
        for path in tmp_path.glob("run-*/H*.pcapng")
        for frame in frames(path)
        if (said := COMMENT.fullmatch(frame.comment)) and said["late"]
    }
    worst: Counter[str] = Counter()
    for run in json.loads(answer.stdout)["runs"]:
        for flow in run["flows"]:
            worst[flow["flow"]] = max(worst[flow["flow"]], flow["worst"])
    assert late == {flow for flow, ratio in worst.items() if ratio > 1}
    assert late


def test_what_the_page_prints_is_typed_in_on_switches_with_queues_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (LABS.parent / "docs/own-labs.md").read_text()
    [(command, file)] = re.findall(r"^    loko (replay .* --pcap captures)\n    wireshark (\S+)$", page, re.M)
    for words in (
        "lab new line --switches 2 --profile ideal-1g --out mine",
        "flows example mine --out mine/flows.yml",
        command,
    ):
        answer = CliRunner().invoke(app, words.split())
        assert answer.exit_code == 0, answer.output
    seen = list(frames(Path(file)))
    # Traffic of low priority comes from hosts at the free ports 3 and 4.
    assert {frame.interface for frame in seen} == {"s1:1", "s1:2", "s1:3", "s1:4", "s1:openflow"}
    assert (tmp_path / "captures/run-1/other-traffic-s1-3.pcapng").is_file()
    messages([frame for frame in seen if frame.interface == "s1:openflow"])
    commented = [bool(frame.comment) for frame in seen if frame.interface == "s1:1"]
    assert set(commented) == {True, False}  # it leaves by port 1, beside the flows' packets


def test_a_session_on_a_cable_is_captured_as_it_passes(tmp_path: Path) -> None:
    lab = (LABS / "two-switch/lab.yml").read_text().replace("control: session", "control: network")
    (tmp_path / "lab.yml").write_text(lab)
    words = ["replay", str(tmp_path), str(FLOWS), "--seconds", "0.1", "--pcap", str(tmp_path / "captures")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    folder = tmp_path / "captures/run-2"
    of_controller = list(frames(folder / "controller.pcapng"))
    for number, name in enumerate(("s1", "s2"), 1):
        at_port = [frame for frame in frames(folder / f"{name}.pcapng") if frame.interface == f"{name}:4"]
        assert at_port
        assert [(frame.is_outbound, frame.data) for frame in at_port] == [
            (not frame.is_outbound, frame.data)
            for frame in of_controller
            if frame.interface == f"controller:{number}"
        ]
