"""Replay exchanges in OpenFlow 1.3, recorded from the firmware, through the Python module.

`switch-emulator/firmware/tests/exchanges13/README.md` explains the format.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypedDict

import pytest
from switch_emulator import Board, Output

EMULATOR: Final = Path(__file__).parents[3] / "switch-emulator"
EXCHANGES: Final = EMULATOR / "firmware/tests/exchanges13/examples.jsonl"
MSS: Final = 536
"""Maximum payload of a TCP segment to the board."""
TICK_NS: Final = 501_000_000
MS_NS: Final = 1_000_000
SLACK_NS: Final = 400_000
"""How far the replay is ahead of the recording's clock, so that a tick at a given instant has taken place."""
GARBAGE: Final = 0xA5
"""Marks a byte that the firmware never wrote."""


class Case(TypedDict, total=False):
    """One line of the recordings."""

    name: str
    config: dict[str, object]
    events: list[str]
    outputs: list[list[str]]
    unsure: list[int]


def cases() -> list[Case]:
    with EXCHANGES.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def free_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a profile in which nothing takes time: the recordings' clock stops while the firmware works."""
    text = (EMULATOR / "profiles/zodiac-fx.toml").read_text(encoding="utf-8")
    head, tail = re.split(r"(?m)^(?=\[cpu\.timers\])", text)
    tail = re.sub(r"(?m)^(\w+_ps) = .*$", r"\1 = 0", tail)
    path = tmp_path_factory.mktemp("profile") / "free.toml"
    path.write_text(head + tail, encoding="utf-8")
    tomllib.loads(head + tail)
    return str(path)


class Bench:
    """A board and the other end of its connection."""

    def __init__(self, profile: str, config: dict[str, object]) -> None:
        settings = {"acknowledgement_ns": 0, **config, "loop_phase_ns": 0}
        self.board = Board(profile=profile, config=settings)
        self.now_ns = 0
        self.recorded_ns = 0
        self.received = b""
        self.taken: list[Output] = []

    def wait(self, time_ns: int) -> None:
        self.recorded_ns += time_ns
        self.now_ns = max(self.now_ns, self.recorded_ns + SLACK_NS)
        self.board.advance(self.now_ns)
        self.taken += self.board.outputs()

    def perform(self, event: str) -> list[str]:
        """Perform one event of a case; return the board's output in the format of the recordings."""
        lines: list[str] = []
        match event.split(" "):
            case ["connect"]:
                lines += self.connect()
            case ["of", *payloads]:
                for payload in map(bytes.fromhex, payloads):
                    for at in range(0, len(payload), MSS):
                        self.board.segment(self.now_ns, payload[at : at + MSS])
                        self.wait(MS_NS)
            case ["pkt", port, frame]:
                self.board.frame(self.now_ns, int(port), bytes.fromhex(frame))
                self.wait(MS_NS)
            case ["tick", count]:
                for _ in range(int(count)):
                    self.wait(TICK_NS)
            case ["ms", count]:
                self.wait(int(count) * MS_NS)
            case ["fin"]:
                self.board.finished(self.now_ns)
                self.wait(MS_NS)
            case ["rst"]:
                self.board.reset(self.now_ns)
                self.wait(MS_NS)
            case ["link", port, state]:
                self.board.link(self.now_ns, int(port), state == "up")
            case ["dump"]:
                lines += self.dump()
            case _:
                raise AssertionError(event)
        taken, self.taken = self.taken, []
        for output in taken:
            lines += self.lines(output)
        return lines

    def connect(self) -> Iterator[str]:
        """Advance through housekeeping ticks until the TCP session is up."""
        for _ in range(20):
            self.wait(TICK_NS)
            if any(output.data == b"connect" for output in self.taken):
                self.taken.clear()
                self.received = b""
                self.board.connected(self.now_ns)
                self.now_ns += SLACK_NS
                self.wait(0)
                yield from ("ev syn", "ev connected")
                return

    def dump(self) -> Iterator[str]:
        flows = self.board.flows13()
        yield f"state version={self.board.openflow_version} entries={len(flows)}"
        for index, flow in enumerate(flows):
            yield (
                f"flow {index} packets={flow.packets} bytes={flow.bytes} head={flow.head.hex()} "
                f"match={flow.oxms.hex()} instructions={flow.instructions.hex()}"
            )

    def lines(self, output: Output) -> Iterator[str]:
        match output.kind:
            case "frame":
                yield f"out {output.port:x} {output.data.hex()}"
            case "controller":
                yield from self.messages(output.data)
            case "event":
                text = output.data.decode()
                if stalled := re.search(r"stalled: of (\d+) bytes .* sent (\d+) in", text, re.DOTALL):
                    whole, sent = (40 + int(count) for count in stalled.groups())
                    yield f"TRUNC iplen={whole} frame_payload={sent}"
                elif text.startswith("the board hangs"):
                    yield "HANG"
                elif text in {"connect", "close"}:
                    yield {"connect": "ev syn", "close": "ev fin"}[text]

    def messages(self, data: bytes) -> Iterator[str]:
        """Split the stream by the lengths in message headers; data without a valid length stays as it is."""
        self.received += data
        while len(self.received) >= 4:
            length = int.from_bytes(self.received[2:4], "big")
            if length < 8:
                length = len(self.received)
            if length > len(self.received):
                return
            yield f"of {self.received[:length].hex()}"
            self.received = self.received[length:]


def comparable(lines: list[str]) -> list[str]:
    """Join consecutive messages; drop what either the recordings or this module do not report."""
    joined: list[str] = []
    for line in lines:
        kind, _, rest = line.partition(" ")
        if (kind == "out" and not 1 <= int(rest.split(" ")[0], 16) <= 0xF) or line == "txdrop":
            continue
        if kind == "of" and joined and joined[-1].startswith("of "):
            joined[-1] += rest
        else:
            joined.append(line)
    return joined


def same(recorded: str, here: str) -> bool:
    if not recorded.startswith("of ") or not here.startswith("of "):
        return recorded == here
    theirs, ours = bytes.fromhex(recorded[3:]), bytes.fromhex(here[3:])
    return len(theirs) == len(ours) and all(a in (GARBAGE, b) for a, b in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_recorded_exchange(case: Case, free_profile: str) -> None:
    bench = Bench(free_profile, case["config"])
    for index, (event, outputs) in enumerate(zip(case["events"], case["outputs"], strict=True)):
        here = comparable(bench.perform(event))
        recorded = comparable(outputs)
        if index in case.get("unsure", []):
            continue
        assert len(recorded) == len(here), (event, recorded, here)
        for theirs, ours in zip(recorded, here, strict=True):
            assert same(theirs, ours), f"at {event} ({index})\n  recorded {theirs}\n  here     {ours}"


def test_the_recordings_are_all_there() -> None:
    assert len(cases()) == 80
