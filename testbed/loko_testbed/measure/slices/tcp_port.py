"""A transfer of iperf3 in real time, over the kernel's TCP, through a port of HTB or policers.

Source and destination have a network namespace each, so that their segments take the wire. The source's link
has the port's rate; no offload is on, so that each segment is a frame, as in virtual time.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loko.slicing.document import HtbPort, HtbQueue, Port
from loko_testbed.instruments.arrivals import arrivals
from loko_testbed.instruments.cables import switch_off_offloads
from loko_testbed.instruments.network_namespace import another_namespace, namespace_of, within
from loko_testbed.instruments.programs import require, run
from loko_testbed.instruments.segment_tap import Segments, SegmentTap
from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.instruments.traffic_control import replace_discipline
from loko_testbed.live.openvswitch import OpenVSwitch, hurry, prefer
from loko_testbed.measure.slices.htb_port import sliced_switch
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.live_port import DESTINATION, SOURCE, cpu_ns
from loko_testbed.measure.slices.policed_port import Policer, policed_switch
from loko_testbed.measure.slices.release import PacketTimes
from loko_testbed.simulation.runner import LOST, RunError

_ADDRESSES: Final = {SOURCE: "10.0.0.1", DESTINATION: "10.0.0.2"}
_PORT: Final = 5201
_INTERVAL_S: Final = 0.1
_START_S: Final = 10.0
_REST_S: Final = 1.0
"""How long the idle switch is watched."""
_BUCKET_BYTES: Final = 20_000
"""Bucket of a host's link, whose timer is some 60 us late: it must hold more than leaves meanwhile."""
_BACKLOG_BYTES: Final = 32 * 1024 * 1024
_BUFFERS: Final = "4096 1048576 67108864"
"""Send and receive buffers grow with the window, and never limit it."""
_FULL_IP_BYTES: Final = 1500
_MORE_FRAMES: Final = 50_000
_MOST_FRAMES: Final = 2_000_000
"""A quarter of a GiB of the kernel's memory."""
_TICKS_PER_S: Final = 100
"""Unit of /proc/stat on every architecture that Linux still supports (proc(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRequest:
    """A transfer through a queue of a port, alone on it."""

    port: Port
    congestion_control: str
    seconds: float
    queue: int = 0
    """Number of the queue."""
    policer: Policer = Policer.TRTCM
    """The policer to use, for a port with policers."""
    injection: InjectionMethod = field(default_factory=best_injection_method)
    """How frames get into the queues of HTB, for a port that has them."""
    tapped: bool = False
    """Whether taps at both hosts note every segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuShares:
    """CPU time over real time: shares of one core."""

    switch: float
    """The process of the switch, system calls included."""
    softirq: float
    """Interrupt work of the whole machine, whoever caused it."""
    machine: float
    """All work of the whole machine."""
    waited: float = 0
    """How long the forwarding thread was ready to run but waited for a core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferReply:
    """iperf3's report by interval; times in s since the transfer began."""

    end_s: NDArray[np.float64]
    received_bytes: NDArray[np.int64]
    """Payload that the destination's program read in the interval."""
    received_end_s: NDArray[np.float64]
    retransmissions: NDArray[np.int64]
    window_bytes: NDArray[np.int64]
    round_trip_us: NDArray[np.int64]
    """The sender's smoothed estimate at the end of the interval."""
    segment_bytes: int
    idle: CpuShares
    busy: CpuShares
    segments: PacketTimes | None = None
    """Full segments between the taps at both hosts, if there are any; times in ns since the first."""
    refused_by_queue: int
    """How often the queue was full. Not a number of packets: Open vSwitch may offer one again, and drops the
    rest of its batch unasked. 0 beside losses: packets were lost before the queue, or by a policer."""


def transmit_all(requests: Sequence[TransferRequest], folder: Path) -> list[TransferReply]:
    """Build the port for each transfer in this network namespace, and carry it. Raises `RunError`."""
    require("iperf3")
    return [_transmit(request, folder / f"transfer{number}") for number, request in enumerate(requests)]


def _transmit(request: TransferRequest, folder: Path) -> TransferReply:
    folder.mkdir(mode=0o700)
    with (
        _switch(request, folder) as switch,
        ExitStack() as hosts,
    ):
        namespaces = {host: hosts.enter_context(_host(host, request)) for host in _ADDRESSES}
        prefixes = {host: within(namespace) for host, namespace in namespaces.items()}
        _prefer(switch)
        before = _cpu_times(switch)
        time.sleep(_REST_S)
        idle = _shares(before, _cpu_times(switch))
        log = folder / "server.json"
        with log.open("wb") as output:
            server = subprocess.Popen(
                [
                    *prefixes[DESTINATION],
                    *(require("iperf3"), "-s", "-1", "-J", "-p", str(_PORT), "-i", str(_INTERVAL_S)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        hosts.callback(_end, server)
        _wait_for(server, prefixes[DESTINATION])
        taps = {
            host: hosts.enter_context(SegmentTap(host, namespace, room=_room(request)))
            for host, namespace in (namespaces if request.tapped else {}).items()
        }
        before = _cpu_times(switch)
        told = run(
            [
                *("iperf3", "-c", _ADDRESSES[DESTINATION], "-p", str(_PORT), "-J", "-i", str(_INTERVAL_S)),
                *("-t", f"{request.seconds:g}", "-C", request.congestion_control),
            ],
            what="iperf3",
            prefix=prefixes[SOURCE],
        )
        busy = _shares(before, _cpu_times(switch))
        try:
            server.wait(scaled_timeout(_START_S))
        except subprocess.TimeoutExpired:
            raise RunError("iperf3's server does not end after its only transfer") from None
        refused = _refused()
        reply = reply_of(
            _parsed(told), _parsed(log.read_text(encoding="utf-8")), idle=idle, busy=busy, refused=refused
        )
        return replace(reply, segments=_segments(taps)) if taps else reply


@contextmanager
def _switch(request: TransferRequest, folder: Path) -> Iterator[OpenVSwitch]:
    """Build the port; all that goes to the destination goes through the request's queue."""
    if isinstance(request.port, HtbPort):
        with sliced_switch(
            request.port, folder, default=request.queue, addressed=True, injection=request.injection
        ) as switch:
            yield switch
    else:
        queues = {SOURCE: request.queue}
        with policed_switch(request.port, request.policer, queues, folder, addressed=True) as switch:
            yield switch


def _prefer(switch: OpenVSwitch) -> None:
    """Give the switch priority over other programs.

    Otherwise it would share the cores with all of them, and lose frames for which its sockets have no room.
    """
    if switch.datapath.polls:
        prefer(switch)
    else:
        hurry(switch.pid)


def reply_of(
    sender: Mapping[str, Any], receiver: Mapping[str, Any], *, idle: CpuShares, busy: CpuShares, refused: int
) -> TransferReply:
    """Combine the reports of both ends. Raises `RunError` with iperf3's own message if there is one."""
    for report in (sender, receiver):
        if "error" in report:
            raise RunError(f"iperf3: {report['error']}")
    try:
        sent = [interval["streams"][0] for interval in sender["intervals"]]
        received = [interval["streams"][0] for interval in receiver["intervals"] if interval["streams"]]
        return TransferReply(
            end_s=np.array([stream["end"] for stream in sent], dtype=np.float64),
            retransmissions=np.array([stream["retransmits"] for stream in sent], dtype=np.int64),
            window_bytes=np.array([stream["snd_cwnd"] for stream in sent], dtype=np.int64),
            round_trip_us=np.array([stream["rtt"] for stream in sent], dtype=np.int64),
            received_end_s=np.array([stream["end"] for stream in received], dtype=np.float64),
            received_bytes=np.array([stream["bytes"] for stream in received], dtype=np.int64),
            segment_bytes=int(sender["start"]["tcp_mss_default"]),
            idle=idle,
            busy=busy,
            refused_by_queue=refused,
        )
    except (KeyError, IndexError, TypeError):
        raise RunError(
            "iperf3's report has no retransmits, snd_cwnd and rtt: use iperf3 3.9 or newer"
        ) from None


@contextmanager
def _host(name: str, request: TransferRequest) -> Iterator[Path]:
    """Give an interface a namespace, an address and the link's rate; yield the namespace."""
    with another_namespace() as holder:
        run(["ip", "link", "set", name, "netns", str(holder)], what=name)
        namespace = namespace_of(holder)
        prefix = within(namespace)
        switch_off_offloads(name, what=name, prefix=prefix)
        settings = [f"net.ipv4.tcp_{kind}mem={_BUFFERS}" for kind in "rw"]
        settings += ["net.ipv4.tcp_no_metrics_save=1"]
        run(["sysctl", "-q", "-w", *settings], what=f"{name}'s buffers", prefix=prefix)
        run(["ip", "link", "set", name, "gso_max_segs", "1", "up"], what=name, prefix=prefix)
        run(["ip", "address", "add", f"{_ADDRESSES[name]}/24", "dev", name], what=name, prefix=prefix)
        kind, *link = _link(request)
        at_root = ["dev", name, "root", kind, *link]
        replace_discipline(kind, at_root, what=f"{name}'s link", prefix=prefix)
        yield namespace


def _link(request: TransferRequest) -> list[str]:
    """Return the queueing discipline of a host's link, and its settings.

    A packet that only the kernel forwards would count for its sender's connection until it leaves the slice's
    queue, and TCP would keep that queue short (`tcp_limit_output_bytes`). `netem` ends that where the link
    begins, as a card does.
    """
    rate = ["rate", f"{request.port.link_rate_bps}bit"]
    if isinstance(request.port, HtbPort) and request.injection is InjectionMethod.KERNEL:
        return ["netem", *rate, "limit", str(_BACKLOG_BYTES // _FULL_IP_BYTES)]
    return ["tbf", *rate, "burst", str(_BUCKET_BYTES), "limit", str(_BACKLOG_BYTES)]


def _room(request: TransferRequest) -> int:
    """Return room for all frames of a transfer, acknowledgements included, at twice its queue's rate."""
    queue = request.port.queues[request.queue]
    rate_bps = queue.ceiling_bps if isinstance(queue, HtbQueue) else queue.cir_bps + queue.eir_bps
    full = 2 * rate_bps * request.seconds / 8 / _FULL_IP_BYTES
    return min(round(2 * full) + _MORE_FRAMES, _MOST_FRAMES)


def _segments(taps: Mapping[str, SegmentTap]) -> PacketTimes:
    sent = join(
        taps[SOURCE].segments(outgoing=True, ip_bytes=_FULL_IP_BYTES),
        taps[DESTINATION].segments(outgoing=False, ip_bytes=_FULL_IP_BYTES),
    )
    begin_ns = sent.sent_ns[0]
    received_ns = np.where(sent.received_ns == LOST, LOST, sent.received_ns - begin_ns)
    return PacketTimes(sent.sent_ns - begin_ns, received_ns)


def join(sent: Segments, received: Segments) -> PacketTimes:
    """Match what two taps saw of a transfer. Raises `RunError` if the sender's saw nothing."""
    if not sent.at_ns.size:
        raise RunError("the tap at the source saw no full segment")
    return PacketTimes(sent.at_ns, arrivals(sent.key, received.key, received.at_ns))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _wait_for(server: subprocess.Popen[bytes], prefix: list[str]) -> None:
    deadline = time.monotonic() + scaled_timeout(_START_S)
    while f":{_PORT} " not in run(["ss", "-ltnH"], what="iperf3's server", prefix=prefix):
        if server.poll() is not None:
            raise RunError(f"iperf3's server ended (exit status {server.returncode})")
        if time.monotonic() > deadline:
            raise RunError("iperf3's server does not listen")
        time.sleep(0.01)


def _refused() -> int:
    """Return how often a full queue dropped; only the transfer's own queue can be full."""
    return sum(
        int(discipline.get("drops", 0))
        for discipline in json.loads(run(["tc", "-j", "-s", "qdisc", "show"], what="the queue's counters"))
        if discipline.get("kind") == "pfifo"
    )


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        report = json.loads(text)
    except json.JSONDecodeError:
        report = None
    if not isinstance(report, dict):
        raise RunError("iperf3 printed no report")
    return report


@dataclass(frozen=True, slots=True)
class _CpuTimes:
    at_ns: int
    switch_ns: int
    waited_ns: int
    softirq_ticks: int
    busy_ticks: int


def _cpu_times(switch: OpenVSwitch) -> _CpuTimes:
    thread = Path(f"/proc/{switch.pid}/task/{switch.forwarding_thread}/schedstat")
    waited_ns = int(thread.read_text(encoding="ascii").split()[1])
    ticks = list(map(int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]))
    user, nice, system, _idle, _iowait, irq, softirq, _steal = ticks
    busy = user + nice + system + irq + softirq
    return _CpuTimes(time.monotonic_ns(), cpu_ns(switch.pid), waited_ns, irq + softirq, busy)


def _shares(before: _CpuTimes, after: _CpuTimes) -> CpuShares:
    seconds = (after.at_ns - before.at_ns) / 1e9
    ticks = _TICKS_PER_S * seconds
    return CpuShares(
        switch=(after.switch_ns - before.switch_ns) / 1e9 / seconds,
        softirq=(after.softirq_ticks - before.softirq_ticks) / ticks,
        machine=(after.busy_ticks - before.busy_ticks) / ticks,
        waited=(after.waited_ns - before.waited_ns) / 1e9 / seconds,
    )
