"""The coarse stand-in: a shared queue of the kernel in front of Open vSwitch stands in for a switch's CPU.

All ports of a switch share one queue, as they share the board's CPU: tbf at the rate of the model, and as
many places as the receive buffer has (docs/stand-in.md says what this cannot show). The commands that build
it are data, `switch-emulator/ovs-tc/*.commands`; this module fills in the numbers, and reads back whether the
kernel obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Self

from loko.document import DATA
from loko.switch_model.device import Profile
from loko.switch_model.scenario import Scenario
from loko.switch_model.service_curve import capacity_frames, service_curve
from loko.units import BITS_PER_BYTE, NS_PER_S
from loko_testbed.instruments.cables import switch_off_offloads
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.live.interfaces import interface_name
from loko_testbed.live.shaping import FCS_BYTES, TbfParameters
from loko_testbed.simulation.runner import RunError

CONSTRUCTION = DATA / "switch-emulator" / "ovs-tc"

LATE_WAKE_UP_NS = 50_000
"""How late the kernel may send a frame without losing rate: the bucket keeps the credit.

More keeps the rate on busier machines, but lets the first frames after an idle time come closer together.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQueue:
    """Parameters of the queue, in bytes as Linux counts them (without FCS)."""

    bucket: TbfParameters
    places: int
    """Frames that may wait, including the one in service. After an idle time one more passes at once."""

    @classmethod
    def of(cls, profile: Profile, scenario: Scenario) -> Self:
        """Return the queue: rate C = l x 8 / p_CPU (equation 6), places 1 + floor(24 / ceil(l/128)).

        With several sizes, the rate is that of the size with the least throughput, and all else that of the
        largest: the time of tbf is proportional to l, while the board's has a constant part. Raises
        `InputError` if the scenario does not fit the device.
        """
        service = service_curve(profile, scenario)
        frame_bytes = service.largest_frame_bytes
        seen = frame_bytes - FCS_BYTES
        rate = int(service.rate_bps * seen / (frame_bytes * BITS_PER_BYTE))
        # Less than a second frame in the bucket, or two would leave at once.
        credit = min(rate * LATE_WAKE_UP_NS // NS_PER_S, seen // 2)
        places = capacity_frames(profile, frame_bytes)
        return cls(
            bucket=TbfParameters(
                rate_bytes_per_s=rate, burst_bytes=seen + credit, limit_bytes=places * seen + credit
            ),
            places=places,
        )

    def differences(self, shown: list[Any]) -> str | None:
        """Compare with ``tc -json qdisc show``: return the difference in words; None if there is none."""
        kinds = [entry.get("kind") for entry in shown]
        if kinds != ["tbf", "pfifo"]:
            return f"the queueing disciplines are {', '.join(map(str, kinds)) or 'none'}"
        if difference := self.bucket.differences(shown[:1]):
            return difference
        limit = shown[1].get("options", {}).get("limit")
        return None if limit == self.places else f"the queue has {limit} places instead of {self.places}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of the interfaces that the stand-in adds for a switch."""

    switch: str

    @property
    def queue(self) -> str:
        """The interface with the shared queue (an ifb)."""
        return self._checked(f"{self.switch}-queue")

    def bridge(self, port: int) -> str:
        """Return the name of a port's bridge."""
        return self._checked(f"{self.switch}-br{port}")

    def near(self, port: int) -> str:
        """Return the name of the bridge's end of the cable to Open vSwitch."""
        return self._checked(f"{self.switch}-in{port}")

    def far(self, port: int) -> str:
        """Return the name of Open vSwitch's end of that cable, which is its port."""
        return self._checked(f"{self.switch}-ovs{port}")

    def _checked(self, name: str) -> str:
        return interface_name(name, node=self.switch, where=self.switch)


def queue_commands(switch: str, queue: SharedQueue) -> list[list[str]]:
    """Return the commands that build a switch's queue."""
    return commands(
        "queue",
        {
            "queue": Names(switch=switch).queue,
            "rate_bps": queue.bucket.rate_bytes_per_s * BITS_PER_BYTE,
            "burst_bytes": queue.bucket.burst_bytes,
            "limit_bytes": queue.bucket.limit_bytes,
            "places": queue.places,
        },
    )


def port_commands(switch: str, port: int, interface: str) -> list[list[str]]:
    """Return the commands that lead a port's frames through the queue and on to Open vSwitch."""
    names = Names(switch=switch)
    return commands(
        "port",
        {
            "port": interface,
            "bridge": names.bridge(port),
            "near": names.near(port),
            "far": names.far(port),
            "queue": names.queue,
        },
    )


def build(switch: str, ports: Mapping[int, str], queue: SharedQueue) -> dict[int, str]:
    """Build the queue of a switch around its interfaces, in the current network namespace.

    `ports` names the interface of each port; it is up and in no bridge. Returns the interface that Open
    vSwitch takes for each port. Raises `RunError` if the kernel refuses something or does something else.
    """
    _leave_frames_alone()
    names = Names(switch=switch)
    _run_commands(queue_commands(switch, queue), f"{switch}: shared queue")
    shown = run_json(["tc", "-json", "qdisc", "show", "dev", names.queue], what=f"{switch}: shared queue")
    if difference := queue.differences(shown):
        raise RunError(f"{switch}: shared queue: {difference}: this kernel or tc did not obey")
    for port, interface in sorted(ports.items()):
        what = f"{switch}: port {port} ({interface})"
        _run_commands(port_commands(switch, port, interface), what)
        for cable_end in (names.near(port), names.far(port)):
            switch_off_offloads(cable_end, what=what)
        _verify_port(what, interface, names, port)
    return {port: names.far(port) for port in ports}


def _verify_port(what: str, interface: str, names: Names, port: int) -> None:
    filters = run_json(["tc", "-json", "filter", "show", "dev", interface, "ingress"], what=what)
    targets = [
        (action.get("mirred_action"), action.get("direction"), action.get("to_dev"))
        for entry in filters
        for action in entry.get("options", {}).get("actions", ())
    ]
    if targets != [("redirect", "egress", names.queue)]:
        raise RunError(f"{what}: frames are not redirected to {names.queue}: this kernel did not obey")
    members = run_json(["ip", "-json", "link", "show", "master", names.bridge(port)], what=what)
    up = {member["ifname"] for member in members if "LOWER_UP" in member["flags"]}
    if up != {interface, names.near(port)}:
        raise RunError(
            f"{what}: bridge {names.bridge(port)} joins {', '.join(sorted(up)) or 'nothing'}, not "
            f"{interface} and {names.near(port)}: this kernel did not obey"
        )


def _leave_frames_alone() -> None:
    """Keep the host's firewall out of the bridges, if the kernel is set to pass bridged frames to it."""
    for setting in Path("/proc/sys/net/bridge").glob("bridge-nf-call-*"):
        setting.write_text("0", encoding="ascii")


def commands(name: str, values: Mapping[str, object]) -> list[list[str]]:
    """Return the commands of a file in `CONSTRUCTION`, with its placeholders filled in."""
    text = Template((CONSTRUCTION / f"{name}.commands").read_text(encoding="utf-8"))
    lines = text.substitute(values).splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def _run_commands(commands: list[list[str]], what: str) -> None:
    for command in commands:
        run(command, what=what)
