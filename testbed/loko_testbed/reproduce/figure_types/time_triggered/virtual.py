"""A case in virtual time: the lab's switches, hosts modelled by their delays, and cross traffic.

This does not use points of `loko_testbed.reproduce.replay`: nothing is admitted, and entries put frames into
queues of ports. It does use `loko_testbed.simulation.traffic`, and each case is a task.

The paper measured an idle network as a whole, from program to program. The network's part of that delay is
simulated; the rest is attributed to the hosts: a constant, and half of the spread at each end. The half
before the network shifts the instant at which a frame is on the cable, so frames of one slot do not always
meet.

If no frame of a case ever meets another, only one frame of each flow is simulated: with a fixed forwarding
time and without memory, a switch treats each frame that finds the network empty alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loko.control.entries import Enqueue, FlowEntry, flow_entry
from loko.switch_model.flow import Flow
from loko.switch_model.generic_switch import GenericSwitch
from loko.topology.lab import Lab, load_lab
from loko.units import NS_PER_US
from loko_testbed.reproduce.figure_types.time_triggered.document import HostTimes
from loko_testbed.reproduce.figure_types.time_triggered.trial import (
    NEVER,
    SlotFrameTimes,
    SlotTrial,
    cross_of,
    flows_of,
    offset_ns,
)
from loko_testbed.simulation.runner import LOST, RunError
from loko_testbed.simulation.traffic import Sender, TimeTriggered
from loko_testbed.simulation.virtual import add_sender, lab_network

_HIGHEST: Final = 7
_LOWEST: Final = 0
_PREAMBLE_BYTES: Final = 8
_GAP_BYTES: Final = 12
_DRAIN_NS: Final = 2_000_000
_IDLE_SEED: Final = 0


def transmit(trial: SlotTrial) -> SlotFrameTimes:
    """Send the frames of a case in virtual time. Raises `RunError`."""
    figure, case, packets, seed = trial
    lab = load_lab(figure.lab)
    flows = flows_of(lab, case, figure.frame_bytes)
    period_ns = round(figure.period_us * NS_PER_US)
    hosts = figure.hosts
    if hosts is None:
        raise RunError(f"{figure.name}: no times of hosts are given; choose --mode live")
    random = np.random.default_rng((seed, len(flows), case.adjacent))
    shape = (len(flows), packets)
    leaves_ns, takes_ns = (half_of_spread_ns(hosts, random, shape) for _ in range(2))
    senders = [
        Sender.of(
            number,
            flow,
            TimeTriggered(
                offset_ns=offset_ns(figure, case, number), period_ns=period_ns, off_ns=leaves_ns[number]
            ),
        )
        for number, flow in enumerate(flows)
    ]
    trunk_bps = next(
        lab.rate_bps(link) for link in lab.links if {link.a.node, link.b.node} == {*lab.switches}
    )
    cross = cross_of(trial, lab, trunk_bps, overhead_bytes=_PREAMBLE_BYTES + _GAP_BYTES)
    queue = _HIGHEST if case.priority else _LOWEST
    idle_ns = np.stack(
        [
            _network_ns(lab, [_alone(sender)], [], queue=queue, duration_ns=period_ns, seed=_IDLE_SEED)[0, :1]
            for sender in senders
        ]
    )
    constant_ns = round(hosts.least_us * NS_PER_US) - idle_ns[0, 0]
    if constant_ns < 0:
        raise RunError(f"{figure.name}: an idle network alone takes longer than hosts.least_us; correct it")
    flow_of_row = np.repeat(np.arange(len(flows)), packets)
    due_ns = np.concatenate(
        [offset_ns(figure, case, n) + period_ns * np.arange(packets) for n in range(len(flows))]
    )
    done_ns = due_ns + leaves_ns.ravel()
    if not cross and treats_lone_frames_alike(lab) and never_meet(done_ns.reshape(shape), idle_ns):
        network_ns = np.broadcast_to(idle_ns, shape)
    else:
        network_ns = _network_ns(lab, senders, cross, queue=queue, duration_ns=packets * period_ns, seed=seed)
    through_ns = network_ns.ravel()
    received_ns = np.where(through_ns == NEVER, NEVER, done_ns + through_ns + constant_ns + takes_ns.ravel())
    return SlotFrameTimes(
        flow=flow_of_row, due_ns=due_ns, begun_ns=due_ns, done_ns=done_ns, received_ns=received_ns
    )


def half_of_spread_ns(
    hosts: HostTimes, random: np.random.Generator, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Draw half of the hosts' delay beyond its minimum, by a gamma distribution.

    The sum of two such draws is gamma-distributed, too, with the mean and deviation of `hosts`. The longest
    of 10,000 has a median of 10.3 us with the hosts of section 4, and of 100,000 one of 13.1 us with those of
    table 2; the paper prints 10 and 13 us.
    """
    mean_us, variance_us2 = hosts.mean_us - hosts.least_us, hosts.deviation_us**2
    drawn_us = random.gamma(mean_us**2 / variance_us2 / 2, variance_us2 / mean_us, shape)
    return np.rint(drawn_us * NS_PER_US).astype(np.int64)


def never_meet(entered_ns: NDArray[np.int64], idle_ns: NDArray[np.int64]) -> bool:
    """Return whether each frame enters the network after the one before it has left an idle one.

    `entered_ns` has a row for each flow and a column for each period, `idle_ns` one column: the time from a
    lone frame's first bit sent to its last bit received. By induction over the frames in order of time, each
    then finds the network empty: the one before it found it so, and has left after its `idle_ns`.
    """
    in_order_ns = entered_ns.T.ravel()
    left_ns = (entered_ns + idle_ns).T.ravel()
    return bool((in_order_ns[1:] > left_ns[:-1]).all())


def treats_lone_frames_alike(lab: Lab) -> bool:
    """Return whether all switches forward in a fixed time, and remember nothing of frames that are gone."""
    return all(
        isinstance(device := switch.profile, GenericSwitch)
        and device.forwarding is not None
        and not (device.lookup or device.server or device.software)
        for switch in lab.switches.values()
    )


def _alone(sender: Sender) -> Sender:
    sends = sender.sends
    assert isinstance(sends, TimeTriggered)
    return replace(sender, sends=replace(sends, off_ns=np.zeros(0, dtype=np.int64)))


def _network_ns(
    lab: Lab,
    senders: Sequence[Sender],
    cross: Sequence[Sender],
    *,
    queue: int,
    duration_ns: int,
    seed: int,
) -> NDArray[np.int64]:
    """Return times from first bit sent to last bit received, one row per flow; `NEVER` for lost frames."""
    tables = {
        switch: [
            *(_entry(lab, switch, place, sender, queue) for sender in senders),
            *(_entry(lab, switch, place, sender, _LOWEST) for sender in cross),
        ]
        for place, switch in enumerate(lab.switches)
    }
    network = lab_network(lab, tables, seed=seed)
    try:
        for sender in [*senders, *cross]:
            add_sender(network, lab, sender, seed=seed, duration_ns=duration_ns)
        result = network.run(duration_ns=duration_ns, drain_ns=_DRAIN_NS)
    except ValueError as error:
        raise RunError(f"lab '{lab.name}': {error}") from None
    rows = []
    for sender in senders:
        mine = result.flow == sender.flow
        wire_ns = round((_PREAMBLE_BYTES + sender.frame_bytes) * 8e9 / lab.rate_bps(lab.links[0]))
        through_ns = result.received_ns[mine] - result.sent_ns[mine] + wire_ns
        rows.append(np.where(result.received_ns[mine] == LOST, NEVER, through_ns))
    return np.stack(rows)


def _entry(lab: Lab, switch: str, place: int, sender: Sender, queue: int) -> FlowEntry:
    """Return a flow's entry: the first switch forwards to the second, which forwards to the destination."""
    towards = sender.destination if place else list(lab.switches)[1]
    port = next(
        here.port
        for link in lab.links
        for here, there in ((link.a, link.b), (link.b, link.a))
        if here.node == switch and there.node == towards
    )
    return replace(flow_entry(lab, _as_flow(sender), port), actions=(Enqueue(port, queue),))


def _as_flow(sender: Sender) -> Flow:
    return Flow(
        id=f"flow-{sender.flow}",
        source=sender.source,
        destination=sender.destination,
        udp_source=sender.udp_source,
        udp_destination=sender.udp_destination,
        rate_bps=1,
        burst_bytes=sender.frame_bytes,
        frame_bytes=sender.frame_bytes,
    )
