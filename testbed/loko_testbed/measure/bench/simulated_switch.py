"""A bench in virtual time around a switch of another kind than the board, carried by the simulator.

Such a switch has no costs of messages, and its operating system interrupts it. So only lone frames and floods
of frames are measured (docs/devices.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

import numpy as np
import switch_emulator

from loko.control.framing import segments_of
from loko.document import InputError
from loko.switch_model.device import load_device, profile_file
from loko.switch_model.linux_switch import LinuxSwitch
from loko_testbed.instruments.numbered_frame import FCS_BYTES
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench.cables import VirtualCables
from loko_testbed.measure.bench.device import MISSING, ControlFrame, TrainTimes
from loko_testbed.measure.bench.equations import LinkTiming

KIND: Final = "linux-switch"
_SWITCH, _SENDER, _RECEIVER = "s1", "H1", "H2"
_HOSTS: Final = ((_SENDER, IN_PORT), (_RECEIVER, OUT_PORT))
_FLOW: Final = 1
_NUMBER_BYTES: Final = 4
_SPARE_FRAMES: Final = 5
_OFFERED: Final = 20
"""More than the shaper lets pass, so that the shaper alone decides when frames leave."""


class SimulatedSwitch:
    """A software switch on Linux between two hosts. Each train starts with an idle switch."""

    def __init__(self, profile: str, *, seed: int = 0) -> None:
        """Set up a switch of this profile. Raises `InputError`."""
        device = load_device(profile)
        if not isinstance(device, LinuxSwitch):
            raise InputError(f"profile '{profile}': is no switch of the kind {KIND}")
        self._profile = str(profile_file(profile))
        try:
            switch_emulator.Network(seed).add_board(_SWITCH, profile=self._profile)
        except ValueError as error:
            raise InputError(str(error)) from None
        self.name = profile
        self.warm_up_frames = 0
        self.wire = LinkTiming(
            rate_bps=device.ports.link_rate_bps.value, tag_bytes=device.switch_chip.tag_bytes.value
        )
        self.now_ns = 0
        self.cables = VirtualCables()
        self._table: list[bytes] = []
        self.begin(seed)

    @property
    def acknowledgement_ns(self) -> None:
        """See `BenchDevice.acknowledgement_ns`. The switch's agent takes no time."""

    @property
    def lateness_ns(self) -> int:
        """See `BenchDevice.lateness_ns`. Virtual time is never late."""
        return 0

    def begin(self, seed: int) -> None:
        """See `BenchDevice.begin`."""
        self._random = np.random.default_rng(seed)
        self.cables.begin()

    def unplugged(self) -> str | None:
        """See `BenchDevice.unplugged`."""
        return self.cables.unplugged()

    def revive(self) -> bool:
        """See `BenchDevice.revive`. This switch does not fall silent."""
        return False

    def load(self, messages: Sequence[bytes]) -> None:
        """See `BenchDevice.load`."""
        self._table = list(segments_of(messages))

    def with_housekeeping(self) -> None:
        """See `BenchDevice.with_housekeeping`. This switch has no such jobs."""

    def in_openflow13(self) -> None:
        """See `BenchDevice.in_openflow13`. This switch's agent is not part of the project."""

    def without_cpu(self) -> None:
        """See `BenchDevice.without_cpu`. This switch does not forward without its CPU."""

    def send(self, gaps_ns: Sequence[int], frames: Sequence[bytes]) -> TrainTimes:
        """See `BenchDevice.send`. All frames must have one length; they follow each other at the mean gap."""
        wire, count = self.wire, len(frames)
        size = len(frames[0]) + FCS_BYTES
        slot_ns = wire.time_ns(wire.preamble_bytes + size + wire.gap_bytes)
        gap_ns = max(sum(gaps_ns) / count, slot_ns)
        rate_bps = size * 8e9 / gap_ns
        network = self._network()
        network.add_source(
            _SENDER,
            flow=_FLOW,
            frame=frames[0],
            sequence_offset=len(frames[0]) - _NUMBER_BYTES,
            shaper_rate_bps=rate_bps,
            shaper_burst_bytes=size,
            offered_rate_bps=_OFFERED * rate_bps,
            burst_bytes=size,
            queue_bytes=_OFFERED * size * (count + _SPARE_FRAMES),
        )
        duration_ns = round((count + _SPARE_FRAMES) * gap_ns)
        for host, port in _HOSTS:
            ahead = self.cables.frames_until_out(port)
            if ahead is not None and ahead <= count:
                network.unplug(host, 1, at_ns=round(ahead * gap_ns))
        self.cables.entered(count)
        result = network.run(duration_ns=duration_ns)
        entered = np.full(count, MISSING, dtype=np.int64)
        left = np.full(count, MISSING, dtype=np.int64)
        seen = min(count, len(result.sent_ns))
        entered[:seen] = result.sent_ns[:seen] + self.now_ns
        received = result.received_ns[:seen]
        left[:seen] = np.where(received == MISSING, MISSING, received + self.now_ns)
        self.now_ns += duration_ns
        return TrainTimes(entered, left, entered == MISSING)

    def control(self, gaps_ns: Sequence[int], segments: Sequence[bytes]) -> list[ControlFrame]:
        """Raise `InputError`: the simulator has no messages of such a switch."""
        del gaps_ns, segments
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(f"{self.name}: a switch of the kind {KIND} has no processing times of messages")

    def _network(self) -> switch_emulator.Network:
        network = switch_emulator.Network(int(self._random.integers(2**31)))
        network.add_board(_SWITCH, profile=self._profile)
        for host, port in _HOSTS:
            network.add_host(host)
            network.connect(host, 1, _SWITCH, port, rate_bps=float(self.wire.rate_bps))
        network.control(_SWITCH, self._table)
        return network
