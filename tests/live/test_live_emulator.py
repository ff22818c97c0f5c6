"""`zodiac-fx` on veths in its own namespace: data path, control connection, start-up errors."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import time
import tomllib
from pathlib import Path

import dpkt
import pytest
from live_harness import needs_namespaces
from os_ken.ofproto import ofproto_v1_0 as of

from benchmarks.builds import ROOT
from loko.control.framing import HEADER
from loko_testbed.live.one_board import (
    TIMEOUT_S,
    UNHURRIED,
    BenchmarkController,
    BenchmarkTap,
    EmulatorProcess,
    Namespace,
    add_flow,
    message,
    read_trace,
    sequence_of,
    udp_frame,
    wait_for,
)

pytestmark = [
    pytest.mark.namespaces,
    needs_namespaces,
]

FRAME_BYTES = 306
WIRE_NS = (8 + FRAME_BYTES) * 80
INNER_NS = (8 + FRAME_BYTES + 1) * 80
SLOT_NS = (8 + FRAME_BYTES + 12) * 80
ENTRIES = 17


def value(table, key):
    entry = table[key]
    return entry["value"] if isinstance(entry, dict) else entry


def profile():
    return tomllib.loads((ROOT / "switch-emulator/profiles/zodiac-fx.toml").read_text())


def cpu_ns(entries):
    """Return p_CPU of a frame for this number of five-tuple entries, all of which are examined."""
    cpu = profile()["cpu"]
    fields = ["base", "dl_type", "nw_proto", "nw_src", "nw_dst", "tp_src", "tp_dst"]
    entry = sum(value(cpu["entry"], f"{name}_ps") for name in fields)
    frame = value(cpu, "base_ps") + value(cpu, "per_byte_ps") * FRAME_BYTES
    return (frame + entries * entry) / 1000


def report_of(emulator):
    """Have the running emulator write a report, and return it."""
    emulator.report_path.unlink(missing_ok=True)
    emulator.process.send_signal(signal.SIGUSR1)
    wait_for(emulator.report_path.exists, "report")
    return json.loads(emulator.report_path.read_text())


def half_loop_ns():
    return value(profile()["cpu"], "loop_ps") / 2000


@pytest.fixture
def namespace():
    with Namespace([("h1", "s1-eth1"), ("h2", "s1-eth2")]) as made:
        yield made


@pytest.fixture
def controller(namespace):
    with BenchmarkController(namespace) as made:
        yield made


@pytest.fixture
def emulator(program, namespace, controller, tmp_path):
    with EmulatorProcess(program, namespace, tmp_path, controller.port) as running:
        yield running


@pytest.fixture
def sender(namespace):
    with BenchmarkTap(namespace, "h1") as tap:
        yield tap


@pytest.fixture
def receiver(namespace):
    with BenchmarkTap(namespace, "h2") as tap:
        yield tap


def all_threads_stopped(pid):
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)


def install_entries(controller, entries=ENTRIES):
    """Install the matching entry last and with the highest priority, so that every entry is examined."""
    for number in range(1, entries):
        controller.write(add_flow(2, udp_port=6000 + number, priority=number))
        controller.confirm()
    controller.write(add_flow(2, udp_port=5000, priority=entries))
    controller.confirm()


class TestForwarding:
    def test_bytes_and_delay(self, program, namespace, controller, sender, receiver, tmp_path):
        trace = tmp_path / "trace.csv"
        process = f'scheduling = "other"\ntrace = "{trace}"\n'
        frames = [udp_frame(number) for number in range(200)]
        with EmulatorProcess(program, namespace, tmp_path, controller.port, process=process) as emulator:
            controller.handshake()
            install_entries(controller)
            for frame in frames:
                sender.send(frame)
                time.sleep(0.001)
            sent = sender.seen(outgoing=True, count=len(frames))
            received = receiver.seen(outgoing=False, count=len(frames))
            report = emulator.end()
        assert [seen.data for seen in received] == frames

        # The intended departure depends only on the arrival, however busy this machine is.
        departures = read_trace(trace)
        intended = [departures[number].intended_ns - seen.at_ns for number, seen in enumerate(sent)]
        mean_ns = WIRE_NS + cpu_ns(ENTRIES) + 2 * INNER_NS
        assert statistics.median(intended) == pytest.approx(mean_ns, abs=half_loop_ns() + 2_000)
        # The actual departure also depends on the machine.
        delays = [after.at_ns - before.at_ns for before, after in zip(sent, received, strict=True)]
        assert min(delays) > mean_ns - half_loop_ns() - 20_000
        prompt = [
            after.at_ns - departures[number].intended_ns
            for number, after in enumerate(received)
            if not departures[number].in_stall
        ]
        assert abs(statistics.median(prompt)) < 20_000

        counters = report["boards"]["s1"]["counters"]
        assert counters["received"] == counters["forwarded"] == len(frames)
        assert report["lateness_ns"]["count"] + report["lateness_in_stalls_ns"]["count"] == len(frames)
        assert report["lateness_ns"]["count"] == len(prompt)
        assert report["stalls"]["count"] >= len(report["stalls"]["list"])
        assert report["loop_ns"]["count"] > 0

    def test_a_burst_that_fits_the_buffer_passes(
        self, program, namespace, controller, sender, receiver, tmp_path
    ):
        """The link delivers a frame every 26 us, the CPU needs 207 us for each, and the ring holds eight."""
        trace = tmp_path / "trace.csv"
        process = f'scheduling = "other"\ntrace = "{trace}"\n'
        with EmulatorProcess(program, namespace, tmp_path, controller.port, process=process) as emulator:
            controller.handshake()
            install_entries(controller)
            for number in range(9):
                sender.send(udp_frame(number))
            received = receiver.seen(outgoing=False, count=9)
            emulator.end()
        assert [sequence_of(seen.data) for seen in received] == list(range(9))
        departures = read_trace(trace)
        gaps = [departures[after].intended_ns - departures[after - 1].intended_ns for after in range(1, 9)]
        assert statistics.median(gaps) == pytest.approx(cpu_ns(ENTRIES), rel=0.005), gaps

    def test_every_frame_of_a_longer_burst_is_accounted_for(self, emulator, controller, sender, receiver):
        """With a full buffer, frames are lost on arrival and, while the CPU pauses the switch, on return."""
        controller.handshake()
        install_entries(controller)
        for number in range(32):
            sender.send(udp_frame(number))
        received = receiver.seen(outgoing=False, count=32, timeout_s=1.0)
        passed = [sequence_of(seen.data) for seen in received]
        assert passed == sorted(set(passed))
        assert 0 < len(passed) < 32
        counters = emulator.end()["boards"]["s1"]["counters"]
        lost = sum(counters[name] for name in ("dropped_buffer", "dropped_switch", "dropped_return"))
        assert counters["received"] == 32
        assert lost == 32 - len(passed)

    @pytest.mark.waits
    def test_short_frames_are_padded(self, emulator, controller, sender, receiver):
        controller.handshake()
        controller.write(add_flow(2))
        controller.confirm()
        frame = udp_frame(7, frame_bytes=54)
        sender.send(frame)
        [seen] = receiver.seen(outgoing=False, count=1)
        assert seen.data == frame.ljust(60, b"\0")

    @pytest.mark.waits
    def test_partial_checksums_are_completed(self, emulator, controller, namespace, receiver):
        """A UDP socket on a veth leaves the checksum to the hardware, which does not exist here."""
        controller.handshake()
        controller.write(add_flow(2))
        controller.confirm()
        namespace.run("ip", "address", "add", "10.0.0.1/24", "dev", "h1")
        namespace.run("ip", "neighbour", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "h1")
        with namespace.entered():
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with udp:
            udp.sendto(b"payload", ("10.0.0.2", 5000))
        [seen] = receiver.seen(outgoing=False, count=1)
        assert udp_checksum_holds(seen.data)

    @pytest.mark.waits
    def test_ports_left_out_have_no_link(self, emulator, controller):
        features = controller.handshake()
        ports = [features[32 + 48 * index :][:48] for index in range((len(features) - 32) // 48)]
        states = {struct.unpack_from("!H", port)[0]: struct.unpack_from("!I", port, 28)[0] for port in ports}
        assert states == {1: 0, 2: 0, 3: 1}

    @pytest.mark.waits
    def test_frame_for_a_port_without_interface_is_gone(self, emulator, controller, sender, receiver):
        controller.handshake()
        controller.write(add_flow(3))
        controller.confirm()
        sender.send(udp_frame(1))

        def forwarded():
            return report_of(emulator)["boards"]["s1"]["counters"]["forwarded"]

        wait_for(lambda: forwarded() == 1, "the frame to be forwarded")
        assert receiver.seen(outgoing=False, count=1, timeout_s=0.2) == []


def udp_checksum_holds(frame):
    length = struct.unpack_from("!H", frame, 38)[0]
    return dpkt.in_cksum(frame[26:34] + struct.pack("!HH", 17, length) + frame[34 : 34 + length]) == 0


@pytest.mark.waits
class TestControlConnection:
    def test_hello_says_version_four(self, emulator, controller):
        assert controller.accept_connection(TIMEOUT_S)
        [hello] = controller.messages(TIMEOUT_S)
        assert (hello[0], hello[1]) == (4, of.OFPT_HELLO)

    @pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
    def test_controller_vanishes_and_comes_back(self, emulator, namespace, controller, reset):
        controller.handshake()
        controller.vanish(reset=reset)
        told = "reset the connection" if reset else "closed the connection"
        wait_for(lambda: told in emulator.log(), "line about the controller's end")
        assert report_of(emulator)["boards"]["s1"]["connected"] is False
        wait_for(lambda: "Connection refused" in emulator.log(), "line about the refusal")
        with BenchmarkController(namespace, controller.port) as again:
            assert len(again.handshake()) == 32 + 3 * 48
            report = emulator.end()
        assert report["boards"]["s1"]["connected"] is True
        told_events = [event["text"] for event in report["events"]]
        assert sum(text.startswith("connected to") for text in told_events) == 2
        assert sum("Connection refused" in text for text in told_events) == 1

    def test_board_s_half_stays_open_behind_the_controller_s_end(
        self, program, namespace, controller, tmp_path
    ):
        """In safe mode the board keeps sending PACKET_INs for table misses until it reconnects (quirk 16)."""
        settings = 'ofchecks = false\nfail_state = "safe"\n'
        with (
            EmulatorProcess(program, namespace, tmp_path, controller.port, settings=settings) as emulator,
            BenchmarkTap(namespace, "h1") as sender,
        ):
            controller.handshake()
            controller.session.shutdown(socket.SHUT_WR)
            wait_for(lambda: "closed the connection" in emulator.log(), "line about the controller's end")
            sender.send(udp_frame(1))
            controller.expect(of.OFPT_PACKET_IN)

    def test_message_in_several_segments(self, emulator, controller, sender, receiver):
        controller.handshake()
        for _ in range(2):
            rule = add_flow(2)
            for part in (rule[:5], rule[5:40], rule[40:]):
                controller.write(part)
                time.sleep(0.05)
        controller.confirm()
        sender.send(udp_frame(1))
        assert len(receiver.seen(outgoing=False, count=1)) == 1
        emulator.end()  # then the log is complete
        assert emulator.log().count("a real board would have lost it") == 1

    def test_message_longer_than_a_segment(self, emulator, controller, sender, receiver):
        controller.handshake()
        once = add_flow(2)
        body = once[8:] + 69 * once[-8:]  # the same action 70 times
        controller.write(message(of.OFPT_FLOW_MOD, 100, body))
        controller.confirm()
        sender.send(udp_frame(1))
        assert receiver.seen(outgoing=False, count=1, timeout_s=0.2) == []
        emulator.end()
        assert "longer than a segment of 536 bytes" in emulator.log()

    def test_many_messages_at_once(self, emulator, controller, sender, receiver):
        """These 648 bytes are split into segments at message boundaries, so that nothing is lost."""
        controller.handshake()
        rules = [add_flow(3, udp_port=6000 + number, priority=number) for number in range(1, 8)]
        controller.write(b"".join([*rules, add_flow(2, udp_port=5000, priority=50)]))
        controller.confirm()
        sender.send(udp_frame(1))
        assert len(receiver.seen(outgoing=False, count=1)) == 1

    def test_garbage_and_a_wrong_length(self, emulator, controller):
        controller.handshake()
        controller.write(b"GET / HTTP/1.1\r\n\r\n")
        wait_for(lambda: "no OpenFlow message" in emulator.log(), "line about the garbage")
        controller.confirm()
        controller.write(HEADER.pack(1, 0, 200, 1))
        wait_for(lambda: "stopped half-way" in emulator.log(), "line about the unfinished message")
        controller.write(message(of.OFPT_ECHO_REQUEST, 77))
        assert controller.expect(of.OFPT_ECHO_REPLY)[4:8] == struct.pack("!I", 77)


@pytest.mark.waits
class TestProcess:
    def test_report_while_running_and_files_afterwards(self, emulator, controller, tmp_path):
        controller.handshake()
        first = report_of(emulator)
        assert first["boards"]["s1"]["connected"] is True
        assert first["scheduling"] == "other"
        assert emulator.end()["loop_ns"]["count"] > first["loop_ns"]["count"]
        assert not (tmp_path / "ready").exists()

    def test_interface_that_goes_down_is_told(self, emulator, namespace, controller):
        controller.handshake()
        namespace.run("ip", "link", "set", "s1-eth1", "down")
        wait_for(
            lambda: "port 1 is down: interface s1-eth1 is down" in emulator.log(), "line about the interface"
        )
        controller.confirm()

    def test_stalls_are_listed(self, emulator, sender):
        emulator.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: all_threads_stopped(emulator.process.pid), "stop of the emulator")
        stopped_ns = time.time_ns()
        sender.send(bytes(60))  # gives the emulator work: an idle thread does not count as stalled
        time.sleep(0.05)
        emulator.process.send_signal(signal.SIGCONT)
        wait_for(lambda: report_of(emulator)["stalls"]["worst_ns"] > 40_000_000, "stall")
        stalls = emulator.end()["stalls"]
        assert stalls["worst_ns"] > 40_000_000
        start_ns, duration_ns = max(stalls["list"], key=lambda stall: stall[1])
        assert duration_ns == stalls["worst_ns"]
        assert abs(start_ns - stopped_ns) < 1_000_000_000

    def test_ends_with_its_parent(self, program, namespace, controller, tmp_path):
        config = tmp_path / "board.toml"
        ready = tmp_path / "ready"
        config.write_text(
            f'[process]\n{UNHURRIED}ready = "{ready}"\n[[board]]\nname = "s1"\ncontroller = "127.0.0.1:1"\n'
        )
        run = shlex.join(namespace.command(str(program), "run", "--die-with-parent", str(config)))
        parent = subprocess.Popen(
            ["sh", "-c", f"{run} 2>/dev/null & echo $!; wait"], stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for(ready.exists, "ready file")
        parent.kill()
        parent.wait()
        parent.stdout.close()
        wait_for(
            lambda: not Path(f"/proc/{child}").exists() or "Z" in process_state(child), "end of the child"
        )
        assert not ready.exists(), "it ended cleanly"


def process_state(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


BOARD = '[[board]]\nname = "s1"\ncontroller = "127.0.0.1:6633"\n[board.ports]\n'

START_ERRORS = {
    "unknown key": ("[process]\nstal_threshold_us = 5\n", ["line 2", "stal_threshold_us", "expected one of"]),
    "missing interface": (
        BOARD + '1 = "s1-eth9"\n',
        ["interface s1-eth9 of board s1 does not exist; create the lab first: loko lab up two-switch"],
    ),
    "interface down": (
        BOARD + '1 = "down0"\n',
        ["interface down0 of board s1 is down", "ip link set down0 up"],
    ),
    "no such core": (f"[process]\ncpu = 1000\n{BOARD}", ["no core 1000"]),
    "interface twice": (BOARD + '1 = "s1-eth1"\n2 = "s1-eth1"\n', ["s1-eth1", "port 1", "own interface"]),
    "address": (BOARD.replace("127.0.0.1:6633", "localhost"), ["localhost", "127.0.0.1:6633"]),
    "profile": (BOARD.replace("[board.ports]", 'profile = "zodiac-hx"'), ["unknown profile", "zodiac-hx"]),
    "report folder": (
        '[process]\nreport = "/no/such/folder/r.json"\n' + BOARD,
        ["process.report", "/no/such/folder"],
    ),
}


@pytest.mark.waits
class TestStartErrors:
    def start(self, program, namespace, folder, text, *, command="run", prefix=()):
        config = folder / "board.toml"
        config.write_text(text)
        line = namespace.command(*prefix, str(program), command, str(config))
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    @pytest.mark.parametrize("case", START_ERRORS)
    def test_one_clear_line(self, program, namespace, tmp_path, case):
        namespace.add_cable("down0", "down1")
        namespace.run("ip", "link", "set", "down0", "down")
        text, parts = START_ERRORS[case]
        line = self.start(program, namespace, tmp_path, text)
        for part in parts:
            assert part in line

    def test_missing_file(self, program, namespace, tmp_path):
        line = [str(program), "run", str(tmp_path / "nothing.toml")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert "nothing.toml" in done.stderr

    def test_no_permission(self, program, namespace, tmp_path):
        without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
        text = BOARD + '1 = "s1-eth1"\n'
        assert "CAP_NET_RAW" in self.start(program, namespace, tmp_path, text, prefix=without)

    def test_scheduling_refused(self, program, namespace, tmp_path):
        without = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
        text = f'[process]\nscheduling = "deadline"\nscheduling_required = true\n{BOARD}1 = "s1-eth1"\n'
        line = self.start(program, namespace, tmp_path, text, prefix=without)
        assert "process.scheduling: the kernel refuses deadline" in line

    def test_check_touches_nothing(self, program, tmp_path):
        config = tmp_path / "board.toml"
        config.write_text(BOARD + '1 = "no-such-if"\n')
        done = subprocess.run(
            [str(program), "check", str(config)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        config.write_text(BOARD + '9 = "no-such-if"\n')
        done = subprocess.run(
            [str(program), "check", str(config)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "ports 1 to 4" in done.stderr

    def test_help_has_an_example(self, program):
        done = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=True)
        assert "zodiac-fx run lab.toml" in done.stdout
        version = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
        assert version.stdout.startswith("zodiac-fx ")
