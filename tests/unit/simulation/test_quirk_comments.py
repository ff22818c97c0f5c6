"""Comments of captures name the quirk wherever a board's session is not as OpenFlow has it."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from tshark import Dissected, dissected, needs_tshark

from loko.control.framing import framed
from loko.document import LABS
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, load_lab
from loko_testbed.simulation.captures.control_stream import Payload
from loko_testbed.simulation.captures.flow_comments import KnownFlows
from loko_testbed.simulation.captures.quirk_comments import REPLY_QUIRKS, frame_of, session_comments
from loko_testbed.simulation.captures.run_captures import write_run
from loko_testbed.simulation.quirks import Quirks, with_quirks
from loko_testbed.simulation.virtual import BoardEvent, CapturedRun, PoweredLab, lab_network

ARP = bytes.fromhex("020000000002020000000001") + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(38)
OUTPUT_10 = struct.pack("!HHHH", 0, 8, 2, 0)
OUTPUT_13 = struct.pack("!HHIH6x", 0, 16, 2, 0xFFFF)
PORT_1_13 = struct.pack("!HHHBBI", 1, 12, 0x8000, 0, 4, 1) + bytes(4)
ANY_13 = struct.pack("!HH4x", 1, 4)


def statistics(part: int, body: bytes = b"") -> bytes:
    return framed(1, 16, 0x100 + part, struct.pack("!HH", part, 0) + body)


def multipart(part: int, body: bytes = b"") -> bytes:
    return framed(4, 18, 0x100 + part, struct.pack("!HH4x", part, 0) + body)


def conversation_10() -> list[bytes]:
    """Return what a controller may say in OpenFlow 1.0, a message in each segment."""
    match = struct.pack("!IH34x", 0x3FFFFE, 1)
    adding = struct.pack("!QHHHHIHH", 0, 0, 0, 0, 100, 0xFFFF_FFFF, 0xFFFF, 0) + OUTPUT_10
    return [
        framed(1, 2, 1),  # ECHO_REQUEST before HELLO
        framed(1, 0, 2),
        framed(1, 5, 3),
        framed(1, 7, 4),
        framed(1, 9, 5, struct.pack("!HH", 1, 200)),
        framed(1, 14, 6, match + adding),
        statistics(0),
        statistics(1, struct.pack("!I36x", 0x3FFFFF) + b"\xff\0\xff\xff"),
        statistics(3),
        statistics(4, struct.pack("!H6x", 0xFFFF)),
        framed(1, 13, 7, struct.pack("!IHH", 0xFFFF_FFFF, 0xFFFF, 8) + OUTPUT_10 + ARP),
        framed(1, 18, 8),
    ]


def conversation_13() -> list[bytes]:
    """Return what a controller may say in OpenFlow 1.3; statistics and a barrier share a segment."""
    adding = struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, 0, 0, 0, 100, 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF, 0)
    apply = struct.pack("!HH4x", 4, 24) + OUTPUT_13
    buckets = struct.pack("!HHII4x", 32, 0, 0xFFFF_FFFF, 0xFFFF_FFFF) + OUTPUT_13
    flows = struct.pack("!B3xII4xQQ", 255, 0xFFFF_FFFF, 0xFFFF_FFFF, 0, 0) + ANY_13
    every = struct.pack("!I4x", 0xFFFF_FFFF)
    return [
        framed(4, 0, 1),
        framed(4, 5, 2),
        framed(4, 14, 3, adding + PORT_1_13 + apply),
        framed(4, 15, 4, struct.pack("!HBBI", 0, 0, 0, 1) + buckets),
        *(multipart(part) for part in (0, 3, 7, 8, 11, 12, 13)),
        *(multipart(part, flows) for part in (1, 2)),
        multipart(4, every),
        multipart(4, struct.pack("!I4x", 77)),  # no such port
        multipart(6, struct.pack("!I4x", 0xFFFF_FFFC)),
        multipart(9, every),
        multipart(10, every),
        multipart(3) + framed(4, 20, 6),
        framed(4, 13, 7, struct.pack("!IIH6x", 0xFFFF_FFFF, 0xFFFF_FFFD, 16) + OUTPUT_13 + ARP),
    ]


CONVERSATIONS = {OpenFlow.V1_0: conversation_10, OpenFlow.V1_3: conversation_13}


def held(openflow: OpenFlow, quirks: Quirks) -> tuple[Lab, CapturedRun]:
    """Have the first switch of a lab hold its conversation, and return what was captured."""
    lab = with_quirks(load_lab(LABS / "two-switch"), quirks)
    network = lab_network(lab, {}, seed=1, openflow=openflow, is_captured=True)
    network.control("s1", CONVERSATIONS[openflow](), spacing_ns=100_000_000)
    powered = PoweredLab(lab, network, 1)
    powered.run([], duration_ns=1_000_000)
    return lab, powered.captured()


def seen_by_tshark(folder: Path, openflow: OpenFlow, quirks: Quirks) -> list[Dissected]:
    """Return the frames of such a conversation."""
    lab, captured = held(openflow, quirks)
    write_run(folder / "run", lab, KnownFlows.admitted(lab, ()), captured)
    seen = dissected(folder / "run/s1.pcapng")
    assert sum(frame.is_openflow for frame in seen) > len(CONVERSATIONS[openflow]())
    return seen


@needs_tshark
@pytest.mark.parametrize("openflow", CONVERSATIONS)
def test_every_warning_of_tshark_has_a_comment_that_names_the_quirk(
    tmp_path: Path, openflow: OpenFlow
) -> None:
    seen = seen_by_tshark(tmp_path, openflow, "firmware")
    warned = [frame for frame in seen if frame.warnings]
    assert warned
    assert [frame for frame in warned if "quirk" not in frame.comment] == []


@needs_tshark
@pytest.mark.parametrize("openflow", CONVERSATIONS)
def test_a_board_as_specified_has_neither_warnings_nor_quirks(tmp_path: Path, openflow: OpenFlow) -> None:
    seen = seen_by_tshark(tmp_path, openflow, "spec")
    assert [frame for frame in seen if frame.warnings or frame.comment] == []


def test_comments_name_the_quirks_that_a_board_has() -> None:
    named = {
        (version, quirk): {
            number
            for comment in comments_of(version, quirk)
            for part in re.findall(r"quirks? ([\d, to]+)", comment)
            for number in re.findall(r"\d+", part)
        }
        for version, quirk in ((1, None), (4, None), (1, "random-port-addresses"), (4, "openflow13"))
    }
    assert {"6", "19", "23", "26", "27", "30", "32"} <= named[1, None]
    assert named[1, None] - named[1, "random-port-addresses"] == {"19"}
    assert {"87", "94", "108", "109", "112"} <= named[4, None]
    assert not named[4, "openflow13"] & {"87", "94", "108", "109", "112"}


def comments_of(version: int, without: str | None) -> list[str]:
    """Return the comments of a board's session, whose quirks lack this one."""
    quirks: Quirks = "firmware" if without is None else {"without": [without]}
    _, captured = held(OpenFlow.V1_0 if version == 1 else OpenFlow.V1_3, quirks)
    [(_, session), *_] = captured.segments
    return list(session_comments([Payload(*each) for each in session], captured.events, quirks).values())


def test_an_event_is_told_at_its_request_and_the_replies_to_it() -> None:
    barrier, echo = framed(1, 18, 1), framed(1, 2, 2)
    event = BoardEvent(1_500, "s1", "message of type 2: answered without its payload (quirk 5)")
    answered = [
        Payload(1_000, False, echo),
        Payload(1_200, False, barrier),
        Payload(2_000, True, framed(1, 3, 2)),
        Payload(3_000, True, framed(1, 19, 1)),
    ]
    assert session_comments(answered, [event], "spec") == {0: event.text, 2: event.text}
    ignored = [
        Payload(1_000, False, echo),
        Payload(1_600, False, barrier),
        Payload(3_000, True, framed(1, 19, 1)),
    ]
    assert session_comments(ignored, [event], "spec") == {0: event.text}
    unasked = [Payload(1_000, False, echo), Payload(2_000, True, framed(1, 10, 0))]
    assert session_comments(unasked, [event], "spec") == {0: event.text}
    long_ago = [Payload(0, False, echo)]
    late = event._replace(at_ns=5_000_000_000)
    assert session_comments(long_ago, [late], "spec") == {0: f"at 5.000000000 s: {event.text}"}


def test_an_event_about_a_frame_is_told_at_the_frame() -> None:
    frames = [(1_000, ARP), (2_000, ARP[:12] + b"\x88\xcc" + ARP[14:]), (3_000, ARP), (9_000, ARP)]
    named = BoardEvent(4_000, "s1", "a frame of type 0x88cc goes to the controller (quirk 61); said once")
    assert frame_of(named, frames) == 1
    assert frame_of(named._replace(text="frame of 9 bytes ignored"), frames) == 2
    assert frame_of(named._replace(at_ns=500), frames) is None


@needs_tshark
def test_the_frame_that_no_entry_can_match_says_so_in_the_capture(tmp_path: Path) -> None:
    lab = load_lab(LABS / "two-switch")
    ends = ("H1", 1), ("s1", 1)
    named = BoardEvent(7_500, "s1", "a frame of type 0x0806 goes to the controller (quirk 61)")
    captured = CapturedRun([(1_000, 7_000, *ends, ARP), (8_000, 9_000, *ends, ARP)], [], [named])
    write_run(tmp_path / "run", lab, KnownFlows.admitted(lab, ()), captured)
    at_board = dissected(tmp_path / "run/s1.pcapng")
    assert [(frame.at_ns, frame.comment) for frame in at_board] == [(7_000, named.text), (9_000, "")]
    assert [frame.comment for frame in dissected(tmp_path / "run/H1.pcapng")] == ["", ""]


def test_quirks_of_replies_are_those_of_the_page() -> None:
    page = (LABS.parent / "docs/quirks.md").read_text()
    named = dict(re.findall(r"^\| `([a-z0-9-]+)` \| ([\d, to]+) \|", page, re.M))
    for reply in REPLY_QUIRKS:
        numbers = set()
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", named[reply.name]):
            numbers |= set(range(int(first), int(last or first) + 1))
        assert numbers >= set(map(int, re.findall(r"\d+", reply.quirks))), reply
