"""A case in real time: hosts are ends of veths, switches are bridges, one program sends and receives.

Everything is in network namespaces of a tree of its own (`loko_testbed.live.isolated_request`): the sources'
ends and the bridges in one, the destinations' ends in another, so that no frame takes a short cut in the
kernel. A veth has no rate and a bridge no queue, so frames never wait for each other there: only the hosts
are measured. For cases in which frames shall wait, the cable between the bridges gets a rate and, with cross
traffic, two priorities.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from loko.schedule.sources import slots_file
from loko.topology.frame import FCS_BYTES, frame_of
from loko.topology.lab import Lab, load_lab
from loko.units import NS_PER_US
from loko_testbed.instruments.emulator import emulator
from loko_testbed.instruments.network_namespace import (
    another_namespace,
    namespace_of,
    set_up_namespace,
    within,
)
from loko_testbed.instruments.programs import run, run_json
from loko_testbed.instruments.traffic_control import Htb, direct_udp, htb_rates, replace_discipline
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.generator import Generator, open_sink
from loko_testbed.live.isolated_request import run_isolated
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredCase, TimeTriggeredFigure
from loko_testbed.reproduce.figure_types.time_triggered.trial import (
    NEVER,
    SlotFrameTimes,
    SlotTrial,
    cross_of,
    flows_of,
    hosts_of,
    offset_ns,
)
from loko_testbed.simulation.runner import RunError, Stall

_TRUNK: Final = "trunk"
_COLUMNS: Final = 4
"""Columns of the program's rows: slot, handed over, taken, received."""
_ETF: Final = ("etf", "clockid", "CLOCK_TAI", "delta", "300000")
"""The queueing discipline that releases frames at their times; it takes them 0.3 ms before."""
_ROUNDED_BYTES: Final = 2
"""Bytes added to a bucket: tc rounds it down, and a bucket smaller than a frame lets none pass."""
_ROOM_FRAMES: Final = 100
_MANY_FRAMES: Final = 10_000
_CABLE, _ABOVE, _BELOW = 1, 0x10, 0x20
"""Classes of HTB: a cable, and its two queues."""
_AHEAD: Final = ("chrt", "--fifo", "1")
"""Real-time priority for the generators: the destination's program polls its ring, and keeps the core."""
_NEARLY_NOTHING_BPS: Final = 1000
"""The assured rate of a queue: one frame in 12 s."""
_WRONG: Final = 2
"""Exit status for a machine that is not ready."""


class NotHereError(RunError):
    """The machine's kernel lacks something that the case needs; the message says what, in one line."""


def transmit_live(trial: SlotTrial) -> SlotFrameTimes:
    """Send the frames of a case on this machine. Raises `RunError`, or its subclass `NotHereError`."""
    lab = load_lab(trial.figure.lab)
    for host in lab.hosts.values():
        if host.interface is not None:
            raise RunError(
                f"{lab.path}: {host.name}: in real time each host of this figure has one interface;"
                f" make hosts of the interfaces of {host.machine}, or choose --mode virtual"
            )
    return run_isolated(_transmit, trial)


def _transmit(trial: SlotTrial, folder: Path) -> SlotFrameTimes:
    figure, case, packets, _ = trial
    lab = load_lab(figure.lab)
    with another_namespace() as holder:
        destinations = namespace_of(holder)
        _build(lab, holder)
        if figure.live_trunk_mbps is not None:
            _limit(lab, figure, case)
        if case.path == "timed-sockets":
            _hold_until_due([flow.source for flow in flows_of(lab, case, figure.frame_bytes)], case.label)
        rows = folder / "rows"
        configuration = folder / "slots.toml"
        configuration.write_text(_configuration(trial, lab, rows, destinations), encoding="utf-8")
        with _cross_traffic(trial, lab, destinations, folder):
            carried_before, began_s = _carried_bytes(lab), time.monotonic()
            done = subprocess.run(
                [str(emulator()), "slots", str(configuration)], capture_output=True, text=True, check=False
            )
            carried, took_s = _carried_bytes(lab) - carried_before, time.monotonic() - began_s
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        wants = "; run 'make setup'" if done.returncode == _WRONG and "unrecognized" in done.stderr else ""
        raise RunError(f"{figure.name}, {case.name}: {said[-1]}{wants}")
    told = json.loads(done.stdout)
    table = np.fromfile(rows, dtype="<i8").reshape(packets, case.flows, _COLUMNS)
    # By flow, then by number, as in virtual time.
    columns = table.transpose(1, 0, 2).reshape(-1, _COLUMNS).T
    start_ns = int(columns[0].min())
    stalls = [*told["stalls"], *told["destination_stalls"]]
    return SlotFrameTimes(
        flow=np.repeat(np.arange(case.flows), packets),
        due_ns=columns[0] - start_ns,
        begun_ns=columns[1] - start_ns,
        done_ns=columns[2] - start_ns,
        received_ns=np.where(columns[3] == NEVER, NEVER, columns[3] - start_ns),
        stalls=tuple(Stall(start_ns=begin - start_ns, duration_ns=length) for begin, length in stalls),
        scheduling=told["scheduling"],
        cross_percent=_cross_percent(trial, carried, took_s),
    )


def _carried_bytes(lab: Lab) -> int:
    """Return the bytes that the cable between the switches has carried so far, as Linux counts them."""
    end = _end(next(iter(lab.switches)), _TRUNK)
    (link,) = run_json(["ip", "-json", "-statistics", "link", "show", end], what=end)
    return int(link["stats64"]["tx"]["bytes"])


def _cross_percent(trial: SlotTrial, carried_bytes: int, took_s: float) -> float | None:
    """Return the share of the cable's rate that cross traffic took; None without cross traffic or a rate."""
    figure, case, packets, _ = trial
    if case.cross_percent == 0 or figure.live_trunk_mbps is None:
        return None
    own_bytes = case.flows * packets * (figure.frame_bytes - FCS_BYTES)
    return 100 * (carried_bytes - own_bytes) * 8 / (took_s * figure.live_trunk_mbps * 1e6)


def _build(lab: Lab, holder: int) -> None:
    """Build hosts, bridges and cables. All neighbour and forwarding entries are static: no host asks."""
    sources, sinks = hosts_of(lab)
    first, second = lab.switches
    links = [f"link add {name} type bridge stp_state 0 mcast_snooping 0" for name in (first, second)]
    links += [f"link add {_end(first, _TRUNK)} type veth peer name {_end(second, _TRUNK)}"]
    for switch, hosts in ((first, sources), (second, sinks)):
        links += [f"link set {_end(switch, _TRUNK)} master {switch}"]
        for name in hosts:
            links += [
                f"link add {name} address {lab.hosts[name].mac} type veth peer name {_end(switch, name)}",
                f"link set {_end(switch, name)} master {switch}",
            ]
    links += [f"link set {name} netns {holder}" for name in sinks]
    known = []
    for switch, here, there in ((first, sources, sinks), (second, sinks, sources)):
        for name in here:
            known.append(f"fdb add {lab.hosts[name].mac} dev {_end(switch, name)} master static")
        for name in there:
            known.append(f"fdb add {lab.hosts[name].mac} dev {_end(switch, _TRUNK)} master static")
    inside = within(namespace_of(holder))
    set_up_namespace("the destinations", inside)
    unfiltered = [f"net.ipv4.conf.{scope}.rp_filter=0" for scope in ("all", "default")]
    for prefix in ([], inside):
        run(["sysctl", "-q", "-w", *unfiltered], what="quiet interfaces", prefix=prefix)
    _batch("ip", links, what="hosts and bridges")
    _batch("bridge", known, what="the bridges' stations")
    ends = [
        *(_end(first, name) for name in [*sources, _TRUNK]),
        *(_end(second, name) for name in [*sinks, _TRUNK]),
    ]
    up = [f"link set {name} up" for name in [first, second, *ends]]
    _batch("ip", [*up, *_addresses(lab, sources, sinks)], what="the sources")
    _batch("ip", _addresses(lab, sinks, sources), what="the destinations", prefix=inside)


def _limit(lab: Lab, figure: TimeTriggeredFigure, case: TimeTriggeredCase) -> None:
    """Limit the rate of the cable towards the second switch, by a token bucket that holds one frame.

    With cross traffic it has two queues as well. Both may only borrow from the cable, and HTB lends to the
    higher one first: strict priority, with no frame interrupted.
    """
    assert figure.live_trunk_mbps is not None
    end = _end(next(iter(lab.switches)), _TRUNK)
    what = f"the cable {end}"
    rate_bps = round(figure.live_trunk_mbps * 1e6)
    seen = figure.frame_bytes - FCS_BYTES
    burst = seen + _ROUNDED_BYTES
    if not figure.cross_frame_bytes:
        room = ["rate", f"{rate_bps}bit", "burst", str(burst), "limit", str(_ROOM_FRAMES * seen)]
        replace_discipline("tbf", ["dev", end, "root", "tbf", *room], what=what)
        return
    htb, turns = Htb(end, default=_BELOW, what=what), ["quantum", str(seen)]
    htb.add(_CABLE, [*htb_rates(rate_bps, rate_bps, burst, burst), *turns])
    borrowing = [*htb_rates(_NEARLY_NOTHING_BPS, rate_bps, burst, burst), *turns]
    for place, number in enumerate((_ABOVE, _BELOW)):
        room = ["pfifo", "limit", str(_MANY_FRAMES)]
        htb.add(number, [*borrowing, "prio", str(place)], below=_CABLE, leaf=room)
    if case.priority:
        port = flows_of(lab, case, figure.frame_bytes)[0].udp_destination
        direct_udp(end, "dport", port, _ABOVE, what=what)


@contextmanager
def _cross_traffic(trial: SlotTrial, lab: Lab, destinations: Path, folder: Path) -> Iterator[None]:
    """Send the cross traffic of a case within the context. Nobody reads what arrives of it."""
    trunk_bps = (trial.figure.live_trunk_mbps or 0) * 1e6
    senders = cross_of(trial, lab, trunk_bps, overhead_bytes=-FCS_BYTES)
    with ExitStack() as stack:
        # All sources are one machine here: the destination decides by which of them a frame leaves.
        for source, destination in sorted({(sender.source, sender.destination) for sender in senders}):
            route = ["route", "add", f"{lab.hosts[destination].ip.ip}/32", "dev", source]
            run(["ip", *route, "src", str(lab.hosts[source].ip.ip)], what=source)
        generators = []
        for sender in senders:
            stack.enter_context(closing(open_sink(destinations, sender.udp_destination)))
            generator = Generator(sender, lab.hosts[sender.destination].ip.ip, _AHEAD, folder)
            stack.callback(generator.cancel)
            generators.append(generator)
        for generator in generators:
            generator.wait()
        yield
        for generator in generators:
            generator.stop()


def _hold_until_due(interfaces: list[str], label: str) -> None:
    for name in interfaces:
        try:
            run(["tc", "qdisc", "replace", "dev", name, "root", *_ETF], what=name)
        except RunError as error:
            raise NotHereError(
                f"{label}: not measured, since this kernel has no queue ETF (CONFIG_NET_SCH_ETF): {error}"
            ) from None


def _end(switch: str, name: str) -> str:
    return f"{switch}-{name}"


def _addresses(lab: Lab, here: list[str], there: list[str]) -> list[str]:
    lines = []
    for name in here:
        lines += [f"link set {name} up", f"address add {lab.hosts[name].ip} dev {name}"]
        for other in there:
            station = lab.hosts[other]
            lines.append(f"neighbour add {station.ip.ip} lladdr {station.mac} dev {name} nud permanent")
    return lines


def _batch(program: str, lines: list[str], *, what: str, prefix: list[str] | None = None) -> None:
    run([program, "-batch", "-"], what=what, prefix=prefix or [], stdin="\n".join(lines) + "\n")


def _configuration(trial: SlotTrial, lab: Lab, rows: Path, destinations: Path) -> str:
    """Return the configuration for `zodiac-fx slots` (switch-emulator/slot-sender)."""
    figure, case, packets, _ = trial
    head: dict[str, str | int] = {
        "path": case.path,
        "period_ns": round(figure.period_us * NS_PER_US),
        "periods": packets,
        "watch_ns": round(case.watch_us * NS_PER_US),
        "cpu": CorePlan.here().emulator,
        "scheduling": "deadline",
        "stall_threshold_us": figure.live_stall_us,
        "rows": str(rows),
        "destination_namespace": str(destinations),
    }
    flows: list[dict[str, str | int]] = [
        {
            "source": flow.source,
            "destination": flow.destination,
            "offset_ns": offset_ns(figure, case, number),
            "frame": frame_of(lab, flow).hex(),
        }
        for number, flow in enumerate(flows_of(lab, case, figure.frame_bytes))
    ]
    return slots_file(head, flows)
