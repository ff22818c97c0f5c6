"""A sliced port in real time: Open vSwitch with DPDK between two veths, with a policer on its egress."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from loko.slicing.document import TrtcmPort, TrtcmQueue
from loko.units import BITS_PER_BYTE
from loko_testbed.live.datapaths import dpdk
from loko_testbed.live.openvswitch import OpenVSwitch
from loko_testbed.measure.slices.live_port import (
    EGRESS,
    IN_PORTS,
    OUT_PORT,
    SOURCE,
    SliceReply,
    SliceRequest,
    cpu_ns,
    send,
    switch_between,
)
from loko_testbed.simulation.runner import RunError

_REST_S: Final = 1.0
"""How long the idle switch is watched."""


class Policer(StrEnum):
    """The policers of Open vSwitch with DPDK."""

    TRTCM = "trtcm-policer"
    """Two rates for each queue (RFC 4115)."""
    EGRESS = "egress-policer"
    """One rate for the whole port (RFC 2697)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicedRequest(SliceRequest):
    """A request to send through a policed port."""

    policer: Policer


def transmit(request: PolicedRequest, folder: Path) -> SliceReply:
    """Build the port in this network namespace and send. Raises `RunError`."""
    assert isinstance(request.port, TrtcmPort)
    queues = {frames.release.host: frames.release.queue for frames in request.frames}
    with policed_switch(request.port, request.policer, queues, folder) as switch:
        return send(request, switch)


def idle_share(port: TrtcmPort, folder: Path) -> float:
    """Return the share of a core that such a switch uses while nothing is sent. Raises `RunError`."""
    with policed_switch(port, Policer.TRTCM, {SOURCE: 0}, folder) as switch:
        before_ns, begin_ns = cpu_ns(switch.pid), time.monotonic_ns()
        time.sleep(_REST_S)
        return (cpu_ns(switch.pid) - before_ns) / (time.monotonic_ns() - begin_ns)


@contextmanager
def policed_switch(
    port: TrtcmPort, policer: Policer, queues: Mapping[str, int], folder: Path, *, addressed: bool = False
) -> Iterator[OpenVSwitch]:
    """Build links, switch and policed port in this network namespace. Raises `RunError`.

    All that a host sends goes through its queue of the port. `addressed`: source and destination have
    addresses, so that the switch also carries what comes back.
    """
    refuse(port, policer)
    cores = sorted(os.sched_getaffinity(0))
    datapath = dpdk(polling_core=cores[0], other_core=cores[-1])
    flows = [f"in_port={IN_PORTS[host]},actions=enqueue:{OUT_PORT}:{queue}" for host, queue in queues.items()]
    if addressed:
        flows.append(f"in_port={OUT_PORT},actions=output:{IN_PORTS[SOURCE]}")
    with switch_between(folder, flows, hosts=tuple(queues), datapath=datapath) as switch:
        of_queues = {number: values(policer, queue) for number, queue in enumerate(port.queues)}
        if policer is Policer.EGRESS:
            switch.police(EGRESS, policer.value, of_queues[0], {})
        else:
            switch.police(EGRESS, policer.value, room_for_all(port), of_queues)
        yield switch


def refuse(port: TrtcmPort, policer: Policer) -> None:
    """Raise `RunError` if the policer cannot be what the port's file says."""
    if policer is Policer.EGRESS and (len(port.queues) > 1 or port.queues[0].eir_bps):
        raise RunError(
            f"the {policer.value} has one rate for the whole port: give one queue without eir_bps,"
            f" or choose the {Policer.TRTCM.value}"
        )


def values(policer: Policer, queue: TrtcmQueue) -> Mapping[str, int]:
    """Return what is configured; Open vSwitch counts rates in bytes per second."""
    values = {"cir": queue.cir_bps // BITS_PER_BYTE, "cbs": queue.cbs_bytes}
    if policer is Policer.TRTCM:
        values |= {"eir": queue.eir_bps // BITS_PER_BYTE, "ebs": queue.ebs_bytes}
    return values


def room_for_all(port: TrtcmPort) -> Mapping[str, int]:
    """Return the values of a port's own `trtcm-policer` with which it drops nothing that its queues let pass.

    Its buckets hold at least what those of all queues hold together. At first this is so; afterwards each
    frame takes as much there as from its queue's, and no less comes in.
    """
    link = port.link_rate_bps // BITS_PER_BYTE
    cir = sum(queue.cir_bps for queue in port.queues) // BITS_PER_BYTE
    eir = sum(queue.eir_bps for queue in port.queues) // BITS_PER_BYTE
    return {
        "cir": max(link, cir + 1),
        "cbs": sum(queue.cbs_bytes for queue in port.queues),
        "eir": max(link, eir + 1) if eir else 0,
        "ebs": sum(queue.ebs_bytes for queue in port.queues),
    }
