"""The parts of a live run that need no lab: shaping, generator and capture."""

from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import dpkt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loko.topology.lab import load_lab
from loko_testbed.live.boards import BoardsReport
from loko_testbed.live.capture import (
    SNAP_BYTES,
    TcpdumpTap,
    join,
    line_times,
    read_frames,
    received_by,
    refuse_incomplete,
    sent_by,
)
from loko_testbed.live.generator import Generator, pattern_of, script
from loko_testbed.live.shaping import TbfParameters
from loko_testbed.live.transmission import Capture, records, refuse
from loko_testbed.simulation.runner import LOST, RunError, Stall
from loko_testbed.simulation.senders import SOCKET_FRAMES
from loko_testbed.simulation.traffic import Bucket, Greedy, RandomBursts, Releases, Sender

H1, H3 = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.3")
START_NS = 1_700_000_000_000_000_000

MODULES = {"tcpdump": "capture", "mgen": "generator"}
"""The module that starts each program."""

FLOW = Sender(
    flow=0,
    source="H1",
    destination="H3",
    udp_source=5001,
    udp_destination=6001,
    frame_bytes=306,
    sends=RandomBursts(
        bucket=Bucket(rate_bps=786_667, burst_bytes=612),
        offered_rate_bps=786_667,
        burst_bytes=612,
        queue_bytes=160 * 306,
    ),
)


def sending(frame_bytes: int = 306, **changes: float) -> Sender:
    """Return FLOW, sending in another way."""
    return replace(FLOW, frame_bytes=frame_bytes, sends=replace(FLOW.sends, **changes))


def shaped(frame_bytes: int = 306, **changes: float) -> Sender:
    """Return FLOW with another token bucket."""
    return sending(frame_bytes, bucket=replace(FLOW.bucket, **changes))


EMPTY_REPORT = BoardsReport(
    counters={"s1": {"received": 5}},
    connected={"s1": True},
    lateness_ns={"p50": 1},
    stalls=(),
    stalls_truncated=False,
    interface_losses=0,
    scheduling="deadline",
)


def test_the_bucket_counts_frames_without_fcs():
    bucket = TbfParameters.of(FLOW)
    assert bucket.rate_bytes_per_s == 786_667 * 302 // (306 * 8)
    assert bucket.burst_bytes == 2 * 302 + 2
    assert bucket.limit_bytes == 160 * 302


def test_a_bucket_of_one_frame_holds_one_frame_after_rounding():
    bucket = TbfParameters.of(shaped(burst_bytes=306))
    assert bucket.burst_bytes - 1 >= 302


@given(burst=st.integers(306, 100_000), size=st.integers(74, 1518))
def test_a_bucket_lets_no_more_frames_pass_at_once_than_allowed(burst, size):
    burst = max(burst, size)
    bucket = TbfParameters.of(shaped(size, burst_bytes=burst))
    frames = bucket.burst_bytes // (size - 4)
    assert burst // size <= frames <= (burst + 3) // size


def test_a_bucket_below_a_frame_is_refused():
    with pytest.raises(RunError, match=r"flow 0 \(H1->H3\): a bucket of 305 bytes never lets a frame of 306"):
        TbfParameters.of(shaped(burst_bytes=305))


def test_a_rate_below_one_byte_per_second_is_refused():
    with pytest.raises(RunError, match="too low"):
        TbfParameters.of(shaped(rate_bps=7))


@pytest.mark.parametrize(
    ("shown", "difference"),
    [
        ([{"kind": "tbf", "options": {"rate": 1000, "burst": 605}}], None),
        ([{"kind": "tbf", "options": {"rate": 1000, "burst": 606}}], None),
        ([{"kind": "tbf", "options": {"rate": 1000, "burst": 604}}], "burst is 604"),
        ([{"kind": "tbf", "options": {"rate": 1001, "burst": 605}}], "rate is 1001"),
        ([{"kind": "noqueue"}], "discipline is noqueue"),
        ([], "discipline is none"),
    ],
)
def test_what_the_kernel_shows_is_compared(shown, difference):
    bucket = TbfParameters(rate_bytes_per_s=1000, burst_bytes=606, limit_bytes=9000)
    differs = bucket.differences(shown)
    assert (differs is None) if difference is None else (difference in differs)


def test_the_script_is_mgens():
    text = script(sending(burst_bytes=4 * 306, offered_rate_bps=979_200), H3)
    # 4 frames of 306 bytes at 979.2 kbit/s: a burst every 10 ms; 326 bytes of line time a frame.
    assert text == (
        "0.0 ON 1 UDP SRC 5001 DST 10.0.0.3/6001 "
        "BURST [RANDOM 0.010000000 PERIODIC [38343.558 260] FIXED 0.000091280]\n"
    )


def test_what_finds_no_room_in_the_socket_waits_in_mgen():
    room = script(sending(queue_bytes=(SOCKET_FRAMES + 340) * 306), H3)
    assert room.endswith(" FIXED 0.000039120] QUEUE 340\n")
    assert "QUEUE" not in script(sending(queue_bytes=SOCKET_FRAMES * 306), H3)


@given(st.integers(1, 200), st.integers(74, 1518))
def test_a_burst_ends_between_its_last_frame_and_the_next(frames, size):
    pattern = pattern_of(sending(size, burst_bytes=frames * size))
    duration_s = float(pattern.text().rsplit(" ", 1)[1].rstrip("]"))
    interval_s = 1 / pattern.line_rate_pps
    assert (frames - 1) * interval_s < duration_s < frames * interval_s


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frame_bytes": 73}, "at least 74 bytes, not 73"),
        ({"burst_bytes": 305}, "no frame of 306"),
        ({"offered_rate_bps": 0}, "at 0 bit/s"),
    ],
)
def test_what_mgen_cannot_send_is_refused(change, reason):
    with pytest.raises(RunError, match=reason):
        pattern_of(sending(**change))


def test_a_greedy_sender_offers_twice_what_passes():
    greedy = replace(FLOW, sends=Greedy(bucket=Bucket(rate_bps=979_200, burst_bytes=612)))
    # 400 frames of 306 bytes pass in a second.
    assert script(greedy, H3).endswith("PERIODIC [800.000 260]\n")
    assert TbfParameters.of(greedy).limit_bytes > 302
    fast = replace(FLOW, sends=Greedy(bucket=Bucket(rate_bps=99e6, burst_bytes=612)))
    assert script(fast, H3).endswith("PERIODIC [38343.558 260]\n")  # the line rate


def test_a_way_of_sending_that_live_runs_do_not_have_is_refused_in_one_line():
    sends = Releases(instants_ns=np.array([0, 5]), bucket=FLOW.bucket)
    what = r"^flow 0 \(H1->H3\): --mode live cannot send frames at given instants \("
    with pytest.raises(RunError, match=what) as error:
        refuse([replace(FLOW, sends=sends)], load_lab("two-switch"))
    assert "\n" not in str(error.value)


def test_a_host_tells_its_flows_apart_by_their_ports():
    refuse([FLOW, replace(FLOW, flow=1, destination="H4", udp_source=5002)], load_lab("two-switch"))
    with pytest.raises(RunError, match="flows 0 and 1 both leave H1 by UDP port 5001"):
        refuse([FLOW, replace(FLOW, flow=1, destination="H4")], load_lab("two-switch"))


def test_a_host_that_is_not_in_the_lab_is_refused():
    with pytest.raises(RunError, match=r"has no host 'H9' \(hosts: H1, H2, H3, H4\)"):
        refuse([replace(FLOW, destination="H9")], load_lab("two-switch"))


def test_a_line_sends_one_frame_after_the_other():
    slot = (306 + 20) * 80
    stamps = np.array([1000, 1002, 1004, 1000 + 10 * slot], dtype=np.int64)
    sizes = np.full(4, 306)
    assert line_times(stamps, sizes).tolist() == [1000, 1000 + slot, 1000 + 2 * slot, 1000 + 10 * slot]


@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(64, 1518)), min_size=1, max_size=50))
def test_line_times_are_the_recursion(frames):
    stamps = np.cumsum([gap for gap, _ in frames]).astype(np.int64)
    sizes = np.array([size for _, size in frames])
    expected, free = [], 0
    for stamp, size in zip(stamps.tolist(), sizes.tolist(), strict=True):
        begin = max(stamp, free)
        expected.append(begin)
        free = begin + (size + 20) * 80
    assert line_times(stamps, sizes).tolist() == expected


def test_no_frames_have_no_line_times():
    assert line_times(np.zeros(0, np.int64), np.zeros(0, np.int64)).size == 0


def mgen_frame(source, destination, flow, sequence):
    payload = (260).to_bytes(2, "big") + b"\x04\x04" + flow.to_bytes(4, "big") + sequence.to_bytes(4, "big")
    udp = dpkt.udp.UDP(sport=5001, dport=6001, data=payload.ljust(260, b"\0"))
    ip = dpkt.ip.IP(src=source.packed, dst=destination.packed, p=dpkt.ip.IP_PROTO_UDP, data=udp)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2\0\0\0\0\1", dst=b"\2\0\0\0\0\3", data=ip))


def write_capture(path: Path, frames, *, snap=SNAP_BYTES, nano=True):
    """Write a capture file as tcpdump does. `frames` holds (nanoseconds, frame)."""
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, snaplen=snap, nano=nano)
        for stamp_ns, frame in frames:
            header = dpkt.pcap.LEPktHdr(
                tv_sec=stamp_ns // 10**9, tv_usec=stamp_ns % 10**9, caplen=snap, len=len(frame)
            )
            file.write(bytes(header) + frame[:snap])
        del writer
    return path


def test_taps_are_joined_by_flow_and_sequence(tmp_path):
    slot = (306 + 20) * 80
    sender = write_capture(
        tmp_path / "H1.pcap",
        [
            (START_NS + 1_000, mgen_frame(H1, H3, 1, 0)),
            (START_NS + 1_100, mgen_frame(H1, H3, 1, 1)),
            (START_NS + 5_000, mgen_frame(H3, H1, 2, 0)),  # the way back passes the same tap
            (START_NS + 90_000_000, mgen_frame(H1, H3, 1, 3)),
            (START_NS + 100_000_000, mgen_frame(H1, H3, 1, 4)),  # after the run
        ],
    )
    receiver = write_capture(
        tmp_path / "H3.pcap",
        [
            (START_NS + 2_000, mgen_frame(H3, H1, 2, 0)),
            (START_NS + 90_600_000, mgen_frame(H1, H3, 1, 3)),
            (START_NS + 600_000, mgen_frame(H1, H3, 1, 0)),
        ],
    )
    there, back = FLOW, replace(FLOW, flow=1, source="H3", destination="H1")
    capture = Capture(
        traffic=(there, replace(back, observed=False)),
        start_ns=START_NS,
        seconds=0.1,
        frames={"H1": read_frames(sender), "H3": read_frames(receiver)},
    )
    after = replace(
        EMPTY_REPORT,
        counters={"s1": {"received": 9}},
        stalls=(
            Stall(start_ns=START_NS - 900, duration_ns=100),
            Stall(start_ns=START_NS + 7, duration_ns=60),
        ),
    )
    joined = records(capture, load_lab("two-switch"), EMPTY_REPORT, after)
    assert joined.flow.tolist() == [0, 0, 0]
    assert joined.sequence.tolist() == [0, 1, 3]
    assert joined.sent_ns.tolist() == [1_000, 1_000 + slot, 90_000_000]
    assert joined.received_ns.tolist() == [600_000, LOST, 90_600_000]
    assert joined.size.tolist() == [306, 306, 306]
    assert joined.boards == {"s1": {"received": 4}}
    assert joined.host.stalls == (Stall(start_ns=7, duration_ns=60),)


def test_a_flow_of_which_nothing_was_sent_has_no_rows(tmp_path):
    frames = read_frames(write_capture(tmp_path / "x.pcap", []))
    numbers, sent, received = join(FLOW, sent_by(H1, frames), received_by(H3, frames))
    assert len(numbers) == len(sent) == len(received) == 0


def test_a_number_seen_twice_at_the_sender_is_refused(tmp_path):
    twice = [(START_NS + k, mgen_frame(H1, H3, 1, 7)) for k in (1, 2)]
    frames = read_frames(write_capture(tmp_path / "x.pcap", twice))
    with pytest.raises(RunError, match="sequence number twice"):
        join(FLOW, sent_by(H1, frames), received_by(H3, frames))


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 24])
def test_a_file_that_is_no_capture_is_refused(tmp_path, content):
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    with pytest.raises(RunError, match="not a capture file"):
        read_frames(path)


def test_microsecond_stamps_are_refused(tmp_path):
    path = write_capture(tmp_path / "x.pcap", [], nano=False)
    with pytest.raises(RunError, match="nanosecond"):
        read_frames(path)


WORDS = "{} packets captured\n{} packets received by filter\n{} packets dropped by kernel\n"


def test_a_tap_that_saw_everything_is_accepted():
    refuse_incomplete("H1", WORDS.format(7, 7, 0))


@pytest.mark.parametrize(("counts", "missed"), [((5, 7, 0), 2), ((7, 7, 3), 3), ((5, 7, 3), 5)])
def test_a_tap_that_missed_frames_is_refused(counts, missed):
    with pytest.raises(RunError, match=f"H1: the tap missed {missed} frames"):
        refuse_incomplete("H1", WORDS.format(*counts))


def test_a_tap_that_failed_is_refused_with_its_words():
    with pytest.raises(RunError, match=r"H1: tcpdump failed: H1-eth0: No such device"):
        refuse_incomplete("H1", "H1-eth0: No such device\n")


def test_foreign_frames_are_noticed(tmp_path):
    path = write_capture(tmp_path / "x.pcap", [(START_NS, mgen_frame(H1, H3, 1, 0))], snap=50)
    with pytest.raises(RunError, match="mgen did not send"):
        read_frames(path)


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("echo half a line >&2; exec sleep 60", r"half a line \(its state is S( in .*nanosleep.*)?\)"),
        ("exec sleep 60", r"empty log \(its state is S( in .*nanosleep.*)?\)"),
        ("echo no such device >&2; exit 3", r"no such device \(it ended with status 3\)"),
    ],
)
@pytest.mark.parametrize("program", ["tcpdump", "mgen"])
def test_a_program_that_does_not_start_is_found_out(tmp_path, monkeypatch, program, instead, said) -> None:
    monkeypatch.setenv("LOKO_PATIENCE", "0.1")
    monkeypatch.setattr(f"loko_testbed.live.{MODULES[program]}.require", lambda name: name)
    prefix = ["/bin/sh", "-c", instead]
    started = (
        TcpdumpTap("H1", "lo", prefix, tmp_path)
        if program == "tcpdump"
        else Generator(FLOW, H3, prefix, tmp_path)
    )
    with pytest.raises(RunError, match=f"^H1: {program} does not start: {said}$"):
        started.wait()
