"""Ceilings: upper limits on the number of flows that tighter bounds could admit. They guarantee nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from loko.admission import Admitted, Usage
from loko.admission.packets import PacketAdmission, frame_server
from loko.switch_model.control_traffic import NO_MESSAGES
from loko.switch_model.device import deterministic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import Scenario
from loko.topology.lab import Lab
from loko.topology.network import shortest_path
from loko_testbed.reproduce.figure_types.admission.reservations import NamedReservation

NO_JITTER: Final = "no-jitter-growth"
"""Packet-granular admission that assumes that frames reach every switch as they were released."""
LINEAR: Final = "linear-program"
"""Maximum of flows, all known at once, within the switches' limits: CPU time, entries, flows that enter."""
CEILINGS: Final = (NO_JITTER, LINEAR)
_SLOW_BPS: Final = 1e3
"""Rate of a flow that occupies one frame of the ring but almost no CPU time."""


class NoJitterGrowth(PacketAdmission):
    """Admission that assumes that every switch delays all frames equally: J = 0 at every hop.

    It guarantees nothing.
    """

    _jitter_grows: ClassVar[bool] = False


def no_jitter_growth(lab: Lab, scenario: Scenario, reservation: NamedReservation) -> NoJitterGrowth:
    """Return an empty admission under a reservation."""
    traffic = reservation.traffic or NO_MESSAGES
    return NoJitterGrowth(lab, scenario, traffic=traffic, padding=reservation.padding)


class FractionalCeiling:
    """The maximum that a lab can carry of flows on shortest paths, if fractions of flows are allowed.

    Maximises the sum of x, the accepted fractions of the flows, 0 <= x <= 1, so that

    - no switch needs more CPU time for forwarding than is left to flows,
    - no table has more entries than planned,
    - no more flows enter at a switch than can all send a frame at the same time.

    With whole flows, or flows that are requested one after the other, fewer fit.
    """

    def __init__(self, lab: Lab, scenario: Scenario, reservation: NamedReservation) -> None:
        """Prepare the program for a lab whose switches are all of one kind."""
        self._lab = lab
        self._place = {name: number for number, name in enumerate(lab.switches)}
        traffic = reservation.traffic or NO_MESSAGES
        profile = deterministic(next(iter(lab.switches.values())).profile)
        least = None if reservation.padding is None else reservation.padding + 1
        self._server = frame_server(profile, scenario, traffic, least_entries=least)
        self._admission = PacketAdmission(lab, scenario, traffic=traffic, padding=reservation.padding)
        self._paths: dict[tuple[str, str], list[int]] = {}

    def accepted(self, flows: Sequence[Flow]) -> float:
        """Return the maximum number of these flows, including fractions, that fit."""
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
        """Limits of a switch: share of the CPU time, entries, flows that enter."""
        entries = self._usage().share("entries").allowed
        return np.array([1 - self._server.interruption.share, entries, float(self._entering())])

    def _entering(self) -> int:
        """Return how many one-frame flows may enter at a switch that forwards nothing else."""
        source, destination = self._local()
        (size, *_) = self._server.times
        for number in range(int(self._usage().share("entries").allowed)):
            flow = Flow(f"f{number}", source, destination, 1024 + number, 1024, _SLOW_BPS, float(size), size)
            if not isinstance(self._admission.request(flow), Admitted):
                break
        entered = len(self._admission.admitted)
        self._admission.release_all()
        return entered

    def _usage(self) -> Usage:
        return self._admission.usage(next(iter(self._place)))

    def _local(self) -> tuple[str, str]:
        """Return two hosts at the same switch."""
        hosts = list(self._lab.hosts)
        return next(
            (near, other)
            for near in hosts
            for other in hosts
            if near != other and len(shortest_path(self._lab, near, other)) == 1
        )

    def _path(self, flow: Flow) -> list[int]:
        ends = flow.source, flow.destination
        if ends not in self._paths:
            self._paths[ends] = [self._place[hop.switch] for hop in shortest_path(self._lab, *ends)]
        return self._paths[ends]
