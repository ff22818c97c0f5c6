"""Numbers of flows that better bounds could let in at most: ceilings, not guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from evaluation.kinds.admission.reservations import Reservation
from loko.admission import Admitted, Usage
from loko.control_traffic import NO_MESSAGES
from loko.device import deterministic
from loko.flow import Flow
from loko.lab import Lab
from loko.network import shortest_path
from loko.packets import PacketAdmission, frame_server
from loko.scenario import Scenario

NO_JITTER: Final = "no-jitter-growth"
"""Packet-granular admission as if frames came everywhere as they were released."""
LINEAR: Final = "linear-program"
"""The most of all requests at once that the switches bear: time of the CPU, entries, flows that enter."""
CEILINGS: Final = (NO_JITTER, LINEAR)
_SLOW_BPS: Final = 1e3
"""A flow that takes a frame of the ring and next to nothing of the CPU."""


class NoJitterGrowth(PacketAdmission):
    """As if no switch delayed one frame more than another: J = 0 at every hop. It guarantees nothing."""

    _jitter_grows: ClassVar[bool] = False


def no_jitter_growth(lab: Lab, scenario: Scenario, reservation: Reservation) -> NoJitterGrowth:
    """Empty, under a reservation."""
    traffic = reservation.traffic or NO_MESSAGES
    return NoJitterGrowth(lab, scenario, traffic=traffic, fillers=reservation.fillers)


class LinearProgram:
    """What a lab bears of requests on shortest paths, in parts of flows.

    The largest sum of x, 0 <= x <= 1, so that

    - no switch forwards for more of the CPU's time than is left to flows,
    - no table has more entries than planned,
    - at no switch enter more flows than can send a frame each at once.

    Whole flows, or flows that come one after the other, can only be fewer.
    """

    def __init__(self, lab: Lab, scenario: Scenario, reservation: Reservation) -> None:
        """The switches are of one kind, as in all labs of the figures."""
        self._lab = lab
        self._place = {name: number for number, name in enumerate(lab.switches)}
        traffic = reservation.traffic or NO_MESSAGES
        profile = deterministic(next(iter(lab.switches.values())).profile)
        least = None if reservation.fillers is None else reservation.fillers + 1
        self._server = frame_server(profile, scenario, traffic, least_entries=least)
        self._admission = PacketAdmission(lab, scenario, traffic=traffic, fillers=reservation.fillers)
        self._paths: dict[tuple[str, str], list[int]] = {}

    def accepted(self, flows: Sequence[Flow]) -> float:
        """The most of these, as flows and parts of flows."""
        import highspy  # noqa: PLC0415 - only this ceiling needs it

        switches, count = len(self._place), len(flows)
        starts, rows, values = [0], [], []
        for flow in flows:
            path = self._path(flow)
            frames_per_ns = flow.rate_bps / 8e9 / flow.frame_bytes
            rows += [3 * at for at in path] + [3 * at + 1 for at in path] + [3 * path[0] + 2]
            values += [frames_per_ns * self._server.times[flow.frame_bytes].service_ns] * len(path)
            values += [1.0] * (len(path) + 1)
            starts.append(len(rows))
        program = highspy.HighsLp()
        program.sense_ = highspy.ObjSense.kMaximize
        program.num_col_, program.num_row_ = count, 3 * switches
        program.col_cost_ = program.col_upper_ = np.ones(count)
        program.col_lower_ = np.zeros(count)
        program.row_lower_ = np.full(3 * switches, -highspy.kHighsInf)
        program.row_upper_ = np.tile(self._limits, switches)
        matrix = program.a_matrix_
        matrix.start_, matrix.index_, matrix.value_ = np.array(starts), np.array(rows), np.array(values)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.passModel(program)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise AssertionError("a linear program of packing always has an optimum")
        return float(solver.getInfo().objective_function_value)

    @cached_property
    def _limits(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Of a switch: part of the CPU's time, entries, flows that enter."""
        entries = self._usage().share("entries").allowed
        return np.array([1 - self._server.interruption.share, entries, float(self._entering())])

    def _entering(self) -> int:
        """So many one-frame flows of one host a switch bears, ring and delay, if nothing else is sent."""
        source, destination = self._local()
        (size, *_) = self._server.times
        for number in range(int(self._usage().share("entries").allowed)):
            flow = Flow(f"f{number}", source, destination, 1024 + number, 1024, _SLOW_BPS, float(size), size)
            if not isinstance(self._admission.request(flow), Admitted):
                break
        found = len(self._admission.admitted)
        self._admission.release_all()
        return found

    def _usage(self) -> Usage:
        return self._admission.usage(next(iter(self._place)))

    def _local(self) -> tuple[str, str]:
        """Two hosts of one switch."""
        hosts = list(self._lab.hosts)
        return next(
            (one, other)
            for one in hosts
            for other in hosts
            if one != other and len(shortest_path(self._lab, one, other)) == 1
        )

    def _path(self, flow: Flow) -> list[int]:
        ends = flow.source, flow.destination
        if ends not in self._paths:
            self._paths[ends] = [self._place[hop.switch] for hop in shortest_path(self._lab, *ends)]
        return self._paths[ends]
