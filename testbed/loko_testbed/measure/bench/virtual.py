"""A bench in virtual time: one emulated board, and taps that miss nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import switch_emulator
from numpy.typing import NDArray
from os_ken.ofproto import ofproto_v1_0 as of

from loko.control.framing import SEGMENT_BYTES, segments_of
from loko.document import InputError
from loko.switch_model.device import load_profile, profile_file
from loko.switch_model.scenario import OpenFlow
from loko_testbed.instruments.dialect import DIALECTS
from loko_testbed.instruments.numbered_frame import FCS_BYTES, announcement, number_of, numbers_of
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench.cables import VirtualCables
from loko_testbed.measure.bench.device import ACKNOWLEDGEMENT_NS, MISSING, ControlFrame, TrainTimes, wire_of
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.virtual_connection import ConnectedBoard
from loko_testbed.simulation.runner import RunError

_HEADERS_BYTES: Final = 14 + 20 + 20
"""Ethernet, IP and TCP headers of a frame with OpenFlow bytes."""
_MIN_FRAME_BYTES: Final = 64
_PATIENCE_NS: Final = 120_000_000
"""Longer than a board takes for anything, even reading its port counters."""
_OUT_MASK: Final = 1 << (OUT_PORT - 1)


class VirtualDevice:
    """An emulated board on the bench. `load` power-cycles it, so that nothing is left from before.

    The bench keeps the TCP session for the board, which is quick. If a reply needs several frames, it asks a
    board that keeps its connection itself (`ConnectedBoard`).
    """

    def __init__(
        self,
        profile: str = "zodiac-fx",
        config: Mapping[str, object] | None = None,
        *,
        seed: int = 0,
        cables: VirtualCables | None = None,
        openflow: OpenFlow = OpenFlow.V1_0,
    ) -> None:
        """Set up a board of this profile, with these settings. Raises `InputError`."""
        self.cables = cables or VirtualCables()
        self.name = profile
        self.warm_up_frames = 0
        self.wire = wire_of(load_profile(profile).ports)
        self.now_ns = 0
        self._profile, self._file = profile, str(profile_file(profile))
        self._config = {"ofchecks": False, **(config or {}), "acknowledgement_ns": ACKNOWLEDGEMENT_NS}
        self._seed = seed
        self._powered = 0
        self._dialect = DIALECTS[openflow]
        self.load([])

    @property
    def acknowledgement_ns(self) -> int:
        """See `BenchDevice.acknowledgement_ns`."""
        return ACKNOWLEDGEMENT_NS

    @property
    def lateness_ns(self) -> int:
        """See `BenchDevice.lateness_ns`. Virtual time is never late."""
        return 0

    def begin(self, seed: int) -> None:
        """See `BenchDevice.begin`. The seed decides the phases of boards that are switched on from now on."""
        self._seed, self._powered = seed, 0
        self.cables.begin()

    def unplugged(self) -> str | None:
        """See `BenchDevice.unplugged`."""
        return self.cables.unplugged()

    def revive(self) -> bool:
        """See `BenchDevice.revive`. This board does not fall silent."""
        return False

    def load(self, messages: Sequence[bytes]) -> None:
        """See `BenchDevice.load`."""
        self._power_on()
        self._table = messages
        self._connect()
        for segment in segments_of(messages):
            self._ask(segment)
        replies = self._ask(self._dialect.barrier_request)
        if [reply[1] for reply in replies] != [self._dialect.barrier_reply]:
            raise RunError(f"{self.name}: the board does not confirm its table: {replies!r}")

    def _power_on(self) -> None:
        seed = int(np.random.SeedSequence([self._seed, self._powered]).generate_state(1)[0])
        self._powered += 1
        self._board_seed = seed
        try:
            self._board = switch_emulator.Board(self._file, self._config, seed)
        except ValueError as error:
            raise InputError(str(error)) from None
        self._connected: ConnectedBoard | None = None
        self.now_ns = 0
        self._cut_ns: dict[int, int] = {}
        """By port: when its cable was pulled out."""
        self._follow_cables(0)

    def _follow_cables(self, at_ns: int) -> None:
        """Tell the board which cables are out at this instant."""
        for port in (IN_PORT, OUT_PORT):
            if self.cables.is_out(port) != (port in self._cut_ns):
                is_out = self.cables.is_out(port)
                self._board.link(at_ns, port, not is_out)
                if is_out:
                    self._cut_ns[port] = at_ns
                else:
                    del self._cut_ns[port]

    def without_cpu(self) -> VirtualDevice:
        """See `BenchDevice.without_cpu`."""
        device = VirtualDevice(self._profile, self._config, seed=self._seed, cables=self.cables)
        device._config["openflow_enabled"] = False
        device._power_on()
        device._board.frame(device.now_ns, OUT_PORT, announcement())
        device._settled(device.now_ns)
        return device

    def with_housekeeping(self) -> VirtualDevice:
        """See `BenchDevice.with_housekeeping`. Each call starts the board anew, at other phases."""
        self._powered += 1
        seed = int(np.random.SeedSequence([self._seed, self._powered, 1]).generate_state(1)[0])
        return VirtualDevice(self._profile, {**self._config, "ofchecks": True}, seed=seed, cables=self.cables)

    def in_openflow13(self) -> VirtualDevice:
        """See `BenchDevice.in_openflow13`. Each call starts the board anew, at other phases."""
        self._powered += 1
        seed = int(np.random.SeedSequence([self._seed, self._powered, 2]).generate_state(1)[0])
        return VirtualDevice(
            self._profile, self._config, seed=seed, cables=self.cables, openflow=OpenFlow.V1_3
        )

    def _connect(self) -> None:
        while not any(output.data == b"connect" for output in self._board.outputs()):
            self._wait()
        self._board.connected(self.now_ns)
        self._ask(self._dialect.hello)
        self._ask(self._dialect.features_request)

    def _ask(self, segment: bytes) -> list[bytes]:
        """Send a segment, wait, and return the replies."""
        self._board.segment(self.now_ns, segment)
        replies = [output.data for output in self._settled(self.now_ns) if output.kind == "controller"]
        for reply in replies:
            if reply[1] == of.OFPT_ERROR:
                raise RunError(f"{self.name}: the board answers with an error: {reply.hex()}")
        return replies

    def _wait(self) -> None:
        """Let so much time pass that a board with something to give has given some of it."""
        self.now_ns += _PATIENCE_NS
        self._board.advance(self.now_ns)

    def _settled(self, from_ns: int) -> list[switch_emulator.Output]:
        """Let time pass from this instant until the board sends nothing more, and return all that it gave."""
        outputs: list[switch_emulator.Output] = []
        self.now_ns = from_ns
        while True:
            self._wait()
            new = self._board.outputs()
            outputs += new
            if not any(output.kind != "event" for output in new):
                return outputs

    def _departures(self, from_ns: int) -> Iterator[switch_emulator.Departures]:
        """Let time pass as `_settled` does, and yield the frames among what the board gives."""
        self.now_ns = from_ns
        while True:
            self._wait()
            new = self._board.departures()
            if not len(new) and not new.others:
                return
            yield new

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> TrainTimes:
        """See `BenchDevice.send`."""
        cables, wire = self.cables, self.wire
        first = number_of(frames[0])
        if first is None:
            raise ValueError("the bench's frames carry numbers")
        self._follow_cables(self.now_ns)
        lengths = np.fromiter(map(len, frames), np.int64, len(frames)) + FCS_BYTES
        passing_ns = _passing_ns(wire, lengths)
        # A frame begins after its gap, but not before the one in front of it and a silence are over.
        steps_ns = np.maximum(np.array(gaps_ns, dtype=np.int64), 0)
        taken_ns = wire.preamble_ns + passing_ns + wire.time_ns(wire.gap_bytes)
        steps_ns[1:] = np.maximum(steps_ns[1:], taken_ns[:-1])
        begun = self.now_ns + np.cumsum(steps_ns)
        entered = begun + wire.preamble_ns
        arrived = entered + passing_ns
        if cables.stay_plugged:
            self._board.frames(arrived, IN_PORT, list(frames))
        else:
            for at_ns, data in zip(arrived.tolist(), frames, strict=True):
                if not cables.is_out(IN_PORT):
                    self._board.frame(at_ns, IN_PORT, data)
                cables.entered()
                self._follow_cables(at_ns)
        left = np.full(len(frames), MISSING, dtype=np.int64)
        for departed in self._departures(int(begun[-1] + taken_ns[-1])):
            numbered, numbers = numbers_of(departed.tail)
            seen_ns = departed.at_ns[numbered].astype(np.int64) + wire.preamble_ns
            passes = (departed.port[numbered] & _OUT_MASK) != 0
            if OUT_PORT in self._cut_ns:
                lengths = departed.size[numbered].astype(np.int64) + FCS_BYTES
                passes &= seen_ns + _passing_ns(wire, lengths) <= self._cut_ns[OUT_PORT]
            left[numbers[passes] - first] = seen_ns[passes]
        return TrainTimes(entered, left, np.zeros(len(frames), dtype=np.bool_))

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """See `BenchDevice.control`."""
        if any(segment[1] == self._dialect.statistics_request for segment in segments):
            return self._asked_by_frames(gaps_ns, segments)
        board, wire = self._board, self.wire
        seen = []
        begin = free = self.now_ns
        for gap, segment in zip(gaps_ns, segments, strict=True):
            begin = max(begin + gap, free)
            length = _frame_bytes(segment)
            seen.append(ControlFrame(begin + wire.preamble_ns, False, length, segment))
            arrived = begin + wire.preamble_ns + wire.time_ns(length)
            free = arrived + wire.time_ns(wire.gap_bytes)
            board.segment(arrived, segment)
        for output in self._settled(free):
            if output.kind == "controller":
                stamp = output.at_ns + wire.preamble_ns
                seen.append(ControlFrame(stamp, True, _frame_bytes(output.data), output.data))
        return sorted(seen, key=lambda sighting: sighting.at_ns)

    def _asked_by_frames(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        if self._connected is None:
            self._connected = ConnectedBoard(
                self._file, self._config, self._board_seed, self.wire, self._dialect
            )
            self._connected.load(self._table)
        return self._connected.control(gaps_ns, segments)


def _passing_ns(wire: LinkTiming, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how long frames of these lengths take to pass; there are few different ones, mostly one."""
    if (lengths == lengths[0]).all():
        return np.full(len(lengths), wire.time_ns(int(lengths[0])), dtype=np.int64)
    different, places = np.unique(lengths, return_inverse=True)
    return np.array([wire.time_ns(length) for length in different.tolist()], dtype=np.int64)[places]


def _frame_bytes(payload: bytes) -> int:
    """Return the length on the wire of the first frame that carries this payload."""
    return max(_HEADERS_BYTES + min(len(payload), SEGMENT_BYTES) + FCS_BYTES, _MIN_FRAME_BYTES)
