"""Captures of other tools: every format, rewritten headers, losses and malformed files."""

from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path

import dpkt
import pytest

from loko.document import InputError
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.captures.analysis import Stamp, analyse, taps_of
from loko_testbed.measure.bench.captures.erf import looks_like_erf
from loko_testbed.measure.bench.captures.files import read_capture
from loko_testbed.measure.bench.captures.fingerprint import fingerprint
from loko_testbed.measure.bench.captures.pairing import TIMEOUT_NS, Pairing, Sighting
from loko_testbed.measure.bench.captures.record import CapturedFrame
from loko_testbed.measure.bench.device import MISSING
from loko_testbed.measure.bench.equations import LinkTiming

WIRE = LinkTiming()
BEGIN_NS = 1_700_000_000_123_456_789
NS = 1_000_000_000
SIZE = 306


def pcap(frames, *, order="<", nanoseconds=True, link=1, snap=65535):
    unit = 1 if nanoseconds else 1000
    data = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for stamp, content in frames:
        kept = content[:snap]
        data += struct.pack(f"{order}IIII", stamp // NS, stamp % NS // unit, len(kept), len(content)) + kept
    return data


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    total = 12 + len(body)
    return struct.pack(f"{order}II", kind, total) + body + struct.pack(f"{order}I", total)


def option(order, code, value):
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def pcapng(frames, *, order="<", resolution=9, offset_s=0, names=("in", "out"), fcs=0, flagged=0):
    """Return a pcapng file. `frames` holds (stamp, interface, bytes)."""
    data = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    for name in names:
        options = option(order, 2, name.encode()) + option(order, 9, bytes([resolution]))
        options += option(order, 13, bytes([fcs])) if fcs else b""
        options += option(order, 14, struct.pack(f"{order}q", offset_s)) + option(order, 0, b"")
        data += block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0) + options)
    per_second = 2 ** (resolution - 128) if resolution & 128 else 10**resolution
    for stamp, interface, content in frames:
        units = (stamp - offset_s * NS) * per_second // NS
        head = struct.pack(
            f"{order}IIIII", interface, units >> 32, units & 0xFFFFFFFF, len(content), len(content)
        )
        padded = content + bytes(-len(content) % 4)
        flags = option(order, 2, struct.pack(f"{order}I", flagged << 5)) if flagged else b""
        data += block(order, 6, head + padded + flags)
    return data


def cooked(content: bytes, interface: int) -> bytes:
    """Return a frame as Linux shows it at the pseudo-interface `any` (SLL2)."""
    return struct.pack(">2sHIHBB8s", content[12:14], 0, interface, 1, 0, 6, content[6:12]) + content[14:]


def erf(frames, *, kind=2, losses=0, extensions=0, fcs=True, flags=0x04):
    """Return an ERF file. `frames` holds (stamp, interface, bytes without FCS)."""
    data = b""
    for stamp, interface, content in frames:
        kept = content + (b"\xff" * 4 if fcs else b"")
        tail = b"".join(
            bytes([(0x80 if n < extensions - 1 else 0) | 3]) + bytes(7) for n in range(extensions)
        )
        tail += bytes(2) + kept
        tail += b"\xee" * (-(16 + len(tail)) % 8)
        ticks = (stamp // NS << 32) + (stamp % NS << 32) // NS
        head = struct.pack("<QBB", ticks, kind | (0x80 if extensions else 0), flags | interface)
        data += head + struct.pack(">HHH", 16 + len(tail), losses, len(content) + 4) + tail
    return data


def written(tmp_path: Path, data: bytes, name: str = "capture") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def stamps(path):
    return [frame_read.stamp_ns for frame_read in read_capture(path)]


ONE = frame(SIZE, 1)
TIMES = [BEGIN_NS, BEGIN_NS + 1, BEGIN_NS + NS]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_is_read_to_the_nanosecond(tmp_path: Path, order: str) -> None:
    path = written(tmp_path, pcap([(at, ONE) for at in TIMES], order=order))
    assert stamps(path) == TIMES
    (first, *_) = read_capture(path)
    assert (first.length_bytes, first.data, first.interface) == (SIZE, ONE, "0")


def test_pcap_in_microseconds_and_cut_frames(tmp_path: Path) -> None:
    path = written(tmp_path, pcap([(at, ONE) for at in TIMES], nanoseconds=False, snap=64))
    assert stamps(path) == [at // 1000 * 1000 for at in TIMES]
    assert {(len(frame_read.data), frame_read.length_bytes) for frame_read in read_capture(path)} == {
        (64, SIZE)
    }


def test_what_dpkt_writes_is_read(tmp_path: Path) -> None:
    """Check the formats against an independent implementation."""
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, nano=True)
    writer.writepkt(ONE, ts=1_700_000_000.5)
    assert stamps(written(tmp_path, file.getvalue())) == [1_700_000_000_500_000_000]
    file = io.BytesIO()
    dpkt.pcapng.Writer(file).writepkt(ONE, ts=1_700_000_000.5)
    assert stamps(written(tmp_path, file.getvalue())) == [1_700_000_000_500_000_000]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("resolution", "error_ns"), [(9, 0), (6, 999), (128 + 30, 1)])
def test_pcapng_keeps_interfaces_and_any_resolution(tmp_path, order, resolution, error_ns) -> None:
    frames = [(at, place % 2, ONE) for place, at in enumerate(TIMES)]
    path = written(tmp_path, pcapng(frames, order=order, resolution=resolution))
    read = list(read_capture(path))
    assert [(frame_read.interface, frame_read.interface_name) for frame_read in read] == [
        ("0", "in"),
        ("1", "out"),
        ("0", "in"),
    ]
    for frame_read, at in zip(read, TIMES, strict=True):
        assert at - error_ns <= frame_read.stamp_ns <= at


def test_pcapng_with_offset_and_a_second_section(tmp_path: Path) -> None:
    part = pcapng([(BEGIN_NS, 1, ONE)], offset_s=1_600_000_000)
    swapped = pcapng([(BEGIN_NS + 5, 0, ONE)], order=">")
    path = written(tmp_path, gzip.compress(part + swapped))
    assert [(frame_read.stamp_ns, frame_read.interface) for frame_read in read_capture(path)] == [
        (BEGIN_NS, "1"),
        (BEGIN_NS + 5, "0"),
    ]


@pytest.mark.parametrize("extensions", [0, 1, 3])
@pytest.mark.parametrize("kind", [2, 11, 16, 20])
def test_erf_is_read_with_its_extensions(tmp_path: Path, extensions: int, kind: int) -> None:
    frames = [(at, place % 4, ONE) for place, at in enumerate(TIMES)]
    path = written(tmp_path, erf(frames, kind=kind, extensions=extensions))
    read = list(read_capture(path))
    assert [frame_read.interface for frame_read in read] == ["0", "1", "2"]
    assert [frame_read.stamp_ns - at for frame_read, at in zip(read, TIMES, strict=True)] == [0, 0, 0]
    assert {(frame_read.length_bytes, frame_read.data) for frame_read in read} == {(SIZE, ONE + b"\xff" * 4)}


def test_erf_may_begin_with_what_the_card_tells_of_itself(tmp_path: Path) -> None:
    """A record of type 27 with extension headers, as newer DAG software writes now and then."""
    told = bytearray(erf([(BEGIN_NS, 0, bytes(60))], kind=27, extensions=2))
    told[14:16] = bytes(2)
    assert stamps(written(tmp_path, bytes(told) + erf([(BEGIN_NS, 0, ONE)]))) == [BEGIN_NS]


def test_taps_of_two_clocks_are_recognised(tmp_path: Path) -> None:
    """The second card's clock is a second behind: every frame seems to leave before it enters."""
    numbered = [(BEGIN_NS + number * 1_000_000, 0, frame(SIZE, number)) for number in range(9)]
    entrance = written(tmp_path, erf(numbered), "in.erf")
    way_out = written(tmp_path, erf([(at - NS, tap, data) for at, tap, data in numbered]), "out.erf")
    with pytest.raises(InputError, match=r"none of its 9 frames entered before: .* two clocks"):
        analyse(*taps_of([entrance, way_out]), WIRE)


def test_erf_leaves_out_what_is_no_good_frame(tmp_path: Path) -> None:
    at = [(BEGIN_NS, 0, ONE)]
    data = erf(at, flags=0x10) + erf(at, kind=48) + erf(at, kind=1) + erf(at)
    assert len(stamps(written(tmp_path, data))) == 1
    assert not looks_like_erf(b"\x7fELF" + bytes(60))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"# notes\n" * 9, "is no capture file of a known format"),
        (pcap([(1, ONE)])[:-1], "byte 40: the file ends in the middle of frame 1;"),
        (pcap([(1, ONE)])[:30], "byte 24: the file ends in the middle of the header of frame 1;"),
        (pcap([])[:20], "the file ends in the middle of the file's header"),
        (pcap([], link=105), "holds no Ethernet frames (link type 105)"),
        (pcap([]) + struct.pack("<IIII", 1, NS, 4, 4), "frame 1 has an impossible header"),
        (pcap([]) + struct.pack("<IIII", 1, 0, 1 << 30, 4), "frame 1 has an impossible header"),
        (pcapng([(1, 0, ONE)])[:-1], "the file ends in the middle of a block"),
        (pcapng([(1, 2, ONE)]), "frame 1 belongs to interface 2, which is not described"),
        (pcapng([])[:8] + bytes(20), "a section does not tell its order of bytes"),
        (pcapng([]) + struct.pack("<II", 6, 1 << 30), "a block claims 1073741824 bytes"),
        (pcapng([]) + struct.pack("<IIII", 6, 16, 0, 15), "a block's two lengths differ"),
        (pcapng([]) + block("<", 6, bytes(8)), "frame 1 is too short"),
        (pcapng([]) + block("<", 3, bytes(8)), "frame 1 has no time stamp"),
        (erf([(1 << 40, 0, ONE)] * 2)[:-9], "the file ends in the middle of record 2"),
        (erf([(1 << 40, 0, ONE)]) + b"\x7f" * 16, "record 2 is none of ERF (type 127, 32639 bytes)"),
        (erf([(1 << 40, 0, ONE)], losses=3), "the card lost 3 frames before record 1"),
        (gzip.compress(pcap([(1, ONE)] * 99), mtime=0)[:-20], "cannot be read"),
        (gzip.compress(b"x", mtime=0)[:9], "cannot be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(InputError) as error:
        stamps(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def captured(data, *, length=SIZE):
    return CapturedFrame(0, "0", None, length, data)


def test_a_rewritten_frame_is_the_same_and_another_is_not() -> None:
    want = fingerprint(captured(ONE))
    assert want is not None
    packet = dpkt.ethernet.Ethernet(ONE)
    packet.src = b"\2\0\0\0\0\x0a"
    packet.data.src = b"\x0a\0\0\x0a"
    packet.data.tos = 0x20
    packet.data.data.sport = 5010
    packet.data.data.sum = 0x1234
    assert fingerprint(captured(bytes(packet))) == want
    tagged = ONE[:12] + bytes.fromhex("81006064") + ONE[12:]
    assert fingerprint(captured(tagged, length=SIZE + 4)) == want
    assert fingerprint(captured(ONE + b"\xde\xad\xbe\xef")) == want  # with its FCS
    assert fingerprint(captured(frame(SIZE, 2))) != want
    for other in (b"", ONE[:13], ONE[:12] + b"\x08\x06" + ONE[14:], ONE[:30]):
        assert fingerprint(captured(other)) is None


def test_cut_frames_are_known_by_the_beginning_of_their_payload() -> None:
    def numbered(number: int) -> bytes:
        return ONE[:42] + number.to_bytes(4, "big") + ONE[46:]

    tagged = numbered(1)[:12] + bytes.fromhex("81000064") + numbered(1)[12:]
    assert fingerprint(captured(numbered(1)[:70])) == fingerprint(captured(tagged[:70]))
    assert fingerprint(captured(numbered(1)[:70])) != fingerprint(captured(numbered(2)[:70]))


def exchange(delays_ns, *, gap_ns=1_000_000):
    """Return what both taps saw of frames with these delays. A delay of None means a lost frame."""
    entered = [(BEGIN_NS + n * gap_ns, frame(SIZE, n)) for n in range(len(delays_ns))]
    pairs = zip(entered, delays_ns, strict=True)
    left = [(at + delay, data) for (at, data), delay in pairs if delay is not None]
    return entered, left


def both(entered, left):
    return sorted([(at, 0, data) for at, data in entered] + [(at, 1, data) for at, data in left])


DELAYS = [282_000 + n for n in range(101)]


@pytest.mark.parametrize("form", ["two pcap", "pcapng", "pcapng by name", "erf"])
def test_equation_4_from_any_form_of_capture(tmp_path: Path, form: str) -> None:
    entered, left = exchange(DELAYS)
    if form == "two pcap":
        files = [written(tmp_path, pcap(entered), "in"), written(tmp_path, pcap(left), "out")]
        taps = taps_of(files)
    elif form == "erf":
        taps = taps_of([written(tmp_path, erf(both(entered, left)))])
    else:
        named = {"in_interface": "in", "out_interface": "out"} if form == "pcapng by name" else {}
        taps = taps_of([written(tmp_path, pcapng(both(entered, left)))], **named)
    analysis = analyse(*taps, WIRE)
    assert (analysis.entered, analysis.left, analysis.lost, analysis.under_way, analysis.unknown) == (
        101,
        101,
        0,
        0,
        0,
    )
    assert analysis.first_loss is None
    (times,) = analysis.times
    wire_ns = (8 + SIZE) * 80
    assert (times.frame_bytes, times.samples) == (SIZE, 101)
    assert abs(times.min_ns - (282_000 - wire_ns)) <= 1  # a tick of ERF is a quarter of a nanosecond
    assert abs(times.quantiles_ns[50] - (282_050 - wire_ns)) <= 1
    assert abs(times.max_ns - (282_100 - wire_ns)) <= 1
    assert analysis.as_json()["sizes"][0]["samples"] == 101
    assert [row[:2] for row in analysis.rows()] == [("306", "101")]


def test_a_burst_shows_what_the_switch_holds(tmp_path: Path) -> None:
    """The switch serves one frame and holds eight, 250 us each: the backlog at the first loss is nine."""
    line_ns = (8 + SIZE + 12) * 80
    arrived = [(8 + SIZE) * 80 + n * line_ns for n in range(96)]
    begun: list[int] = []
    delays = []
    for n, at in enumerate(arrived):
        held = [start for start in begun if start + 250_000 >= at]
        if len(held) < 9:
            begun.append(max(at, (begun[-1] if begun else 0) + 250_000))
            delays.append(begun[-1] + 250_000 - n * line_ns)
        else:
            delays.append(None)
    entered, left = exchange(delays, gap_ns=line_ns)
    path = written(tmp_path, pcapng(both(entered, left)))
    analysis = analyse(*taps_of([path]), WIRE)
    assert analysis.lost + analysis.under_way == delays.count(None)
    assert analysis.first_loss is not None
    assert analysis.first_loss.backlog_frames == 9
    assert analysis.first_loss.at_ns == entered[delays.index(None)][0]
    # The sender's own kernel sees the burst all at once. The line rate tells when each frame begins.
    at_once = [(BEGIN_NS + n, data) for n, (_, data) in enumerate(entered)]
    files = [written(tmp_path, pcap(at_once), "in"), written(tmp_path, pcap(left), "out")]
    again = analyse(*taps_of(files), WIRE, at_sender=True)
    assert again.first_loss is not None
    assert again.first_loss.backlog_frames == 9
    assert again.times[0].min_ns == analysis.times[0].min_ns


def test_stamps_of_the_end_count_from_the_beginning(tmp_path: Path) -> None:
    entered, left = exchange(DELAYS)
    late = [[(at + SIZE * 80, data) for at, data in frames] for frames in (entered, left)]
    path = written(tmp_path, pcapng(both(*late)))
    assert (
        analyse(*taps_of([path]), WIRE, stamps=Stamp.END).times
        == analyse(*taps_of([written(tmp_path, pcapng(both(entered, left)), "start")]), WIRE).times
    )


def test_frames_of_equal_content_are_paired_in_order_and_strangers_are_counted(tmp_path: Path) -> None:
    entered = [(BEGIN_NS + n * 26_080, ONE) for n in range(5)]
    left = [(at + 300_000, data) for at, data in entered]
    arp = ONE[:12] + b"\x08\x06" + ONE[14:]
    files = [
        written(tmp_path, pcap([*entered, (BEGIN_NS + 900_000, arp)]), "in"),
        written(tmp_path, pcap([(BEGIN_NS, frame(SIZE, 77)), *left]), "out"),
    ]
    analysis = analyse(*taps_of(files), WIRE)
    assert (analysis.entered, analysis.left, analysis.unknown, analysis.not_ip, analysis.lost) == (
        5,
        5,
        1,
        1,
        0,
    )
    assert analysis.times[0].min_ns == analysis.times[0].max_ns


def test_what_was_not_seen_again_is_forgotten_after_a_while() -> None:
    pairing = Pairing()
    early, late = (Sighting(at, False, SIZE, bytes([at % 7])) for at in (5, TIMEOUT_NS + 6))
    assert list(pairing.enter(early, 30)) == []
    (fate,) = pairing.enter(late, TIMEOUT_NS + 40)
    assert (fate.entered_ns, fate.left_ns, fate.backlog_frames) == (5, MISSING, 0)
    assert pairing.end() == ([], 1)


def test_taps_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, pcap([(BEGIN_NS, ONE)]))
    with pytest.raises(
        InputError, match=r"no frame with IPv4 of interface 1 is in it; it has the interfaces 0"
    ):
        analyse(*taps_of([path]), WIRE)
    with pytest.raises(InputError, match="--in-interface and --out-interface are both 1"):
        taps_of([path], in_interface="1")
    with pytest.raises(InputError, match="3 capture files: give one with both taps, or two"):
        taps_of([path] * 3)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        stamps(tmp_path / "none")


def test_a_file_out_of_order_is_sorted_if_it_is_by_little(tmp_path: Path) -> None:
    entered, left = exchange(DELAYS)
    shuffled = [*entered[50:], *entered[:50]]
    files = [written(tmp_path, pcap(shuffled), "in"), written(tmp_path, pcap(left), "out")]
    assert analyse(*taps_of(files), WIRE).times[0].samples == 101


FCS = b"\xde\xad\xbe\xef"


@pytest.mark.parametrize("form", ["pcap", "pcapng", "pcapng by packet"])
def test_a_stored_fcs_counts_once(tmp_path: Path, form: str) -> None:
    content = [(BEGIN_NS, 0, ONE + FCS)]
    data = {
        "pcap": pcap([(BEGIN_NS, ONE + FCS)], link=0x24000001),
        "pcapng": pcapng(content, fcs=4),
        "pcapng by packet": pcapng(content, flagged=4),
    }[form]
    (read,) = read_capture(written(tmp_path, data))
    assert (read.length_bytes, fingerprint(read)) == (SIZE, fingerprint(captured(ONE)))


def test_a_capture_of_all_interfaces_has_its_taps_by_their_index(tmp_path: Path) -> None:
    entered, left = exchange(DELAYS)
    seen = sorted(
        [(at, cooked(data, 7)) for at, data in entered] + [(at, cooked(data, 3)) for at, data in left]
    )
    taps = taps_of([written(tmp_path, pcap(seen, link=276))])
    assert [tap.interface for tap in taps] == ["7", "3"]
    wanted = analyse(*taps_of([written(tmp_path, pcapng(both(entered, left)), "ng")]), WIRE)
    assert analyse(*taps, WIRE) == wanted


def test_a_capture_that_tells_no_interface_says_how_to_capture(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tcpdump -i any -y LINUX_SLL2, or one file for each interface"):
        stamps(written(tmp_path, pcap([(BEGIN_NS, ONE)], link=113)))


def test_which_of_several_equal_frames_was_lost_is_not_guessed(tmp_path: Path) -> None:
    """Twenty equal frames, the fourth is lost: paired in order, all later ones would seem 2 ms late."""
    entered = [(BEGIN_NS + n * 2_000_000, ONE) for n in range(20)]
    left = [(at + 104_000, data) for n, (at, data) in enumerate(entered) if n != 3]
    files = [written(tmp_path, pcap(entered), "in"), written(tmp_path, pcap(left), "out")]
    analysis = analyse(*taps_of(files), WIRE)
    assert (analysis.entered, analysis.left, analysis.lost + analysis.under_way) == (20, 19, 1)
    assert analysis.undecided == 16
    assert analysis.times[0].samples == 3
    assert analysis.times[0].max_ns == 104_000 - (8 + SIZE) * 80
    assert analysis.as_json()["undecided"] == 16
    later = [(at + TIMEOUT_NS, frame(SIZE, 100 + n)) for n, (at, _) in enumerate(entered)]
    files = [
        written(tmp_path, pcap([*entered, *later]), "in"),
        written(tmp_path, pcap([*left, *((at + 104_000, data) for at, data in later)]), "out"),
    ]
    again = analyse(*taps_of(files), WIRE)
    assert (again.lost, again.under_way, again.undecided, again.first_loss) == (1, 0, 16, None)


def test_equal_frames_of_which_none_is_lost_are_certain(tmp_path: Path) -> None:
    entered = [(BEGIN_NS + n * 30_000, ONE) for n in range(9)]
    left = [(at + 104_000, data) for at, data in entered]
    files = [written(tmp_path, pcap(entered), "in"), written(tmp_path, pcap(left), "out")]
    analysis = analyse(*taps_of(files), WIRE)
    assert (analysis.undecided, analysis.times[0].samples) == (0, 9)


def test_frames_that_a_mirror_port_shows_twice_are_refused(tmp_path: Path) -> None:
    entered, left = exchange(DELAYS)
    twice = sorted([*entered, *((at + 900, data) for at, data in entered)])
    files = [written(tmp_path, pcap(twice), "in"), written(tmp_path, pcap(left), "out")]
    with pytest.raises(InputError, match="a frame is there twice within 900 ns, as mirror ports"):
        analyse(*taps_of(files), WIRE)


def test_frames_that_a_card_cuts_later_are_refused(tmp_path: Path) -> None:
    long = frame(2962, 1)
    files = [written(tmp_path, pcap([(BEGIN_NS, long)]), "in"), written(tmp_path, pcap([]), "out")]
    with pytest.raises(InputError, match="a frame of 2962 bytes, which a network card cuts later"):
        analyse(*taps_of(files), WIRE)
    files = [files[0], written(tmp_path, pcap([(BEGIN_NS + 300_000, long)]), "out")]
    assert analyse(*taps_of(files), WIRE, jumbo=True).times[0].frame_bytes == 2962
