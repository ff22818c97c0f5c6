"""`LiveRunner`: runs in real time, for the evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar, Self

from loko.control.entries import EVALUATION_ENTRIES
from loko.switch_model.flow import Flow
from loko.topology.lab import Backend, Lab
from loko.topology.network import Routed
from loko_testbed.live.building import start
from loko_testbed.live.cards import hand_in
from loko_testbed.live.confinement import Confinement
from loko_testbed.live.cores import CorePlan
from loko_testbed.live.generator import CARRIES
from loko_testbed.live.messages import BuildRequest, LabStatus, StatusRequest, TrafficRequest
from loko_testbed.simulation.options import OS_KEN, Builder, Options
from loko_testbed.simulation.runner import RunError, RunRecords, refuse_others
from loko_testbed.simulation.traffic import Sender, Sends


class LiveRunner:
    """Sends traffic through emulated boards in real time (`loko_testbed.simulation.runner.Runner`).

    The lab is started once, with the controller's tables for the flows, and carries any number of runs. Real
    boards get their traffic from hosts of this machine, which send as those of emulated boards do.
    """

    carries: ClassVar[frozenset[type[Sends]]] = CARRIES

    def __init__(
        self,
        lab: Lab,
        flows: Sequence[Flow | Routed],
        *,
        allocation: str = "fifth-rate",
        entries: int = EVALUATION_ENTRIES,
        seed: int = 0,
        cores: CorePlan | None = None,
        backend: Backend | None = None,
        builder: Builder = Builder.MININET,
        framework: str = OS_KEN,
        framework_python: str | None = None,
    ) -> None:
        """`flows` are those that the controller admits by the allocation scheme, whatever is sent later.

        Flows that come with the path on which they were admitted are admitted and installed on no other.
        `seed` is for the boards' own randomness. `cores`: by default the last one is for the emulator; a
        relaxed plan is for a lab beside others, whose delays nobody judges. `backend` replaces the lab's
        backend of every switch. `builder` builds the network. `framework` is the controller's, in the
        interpreter `framework_python`, by default this one.
        """
        self._lab = lab
        self._flows = tuple(flow if isinstance(flow, Flow) else flow.flow for flow in flows)
        self._paths = {flow.flow.id: flow.path for flow in flows if not isinstance(flow, Flow)}
        self._allocation = allocation
        self._entries = entries
        self._seed = seed
        self._backend = backend
        self._builder = builder
        self._framework, self._framework_python = framework, framework_python
        self._plan = cores or CorePlan.here()
        self._confinement: Confinement | None = None
        self._affinity = os.sched_getaffinity(0)

    @classmethod
    def of(
        cls,
        lab: Lab,
        routed: Sequence[Routed],
        options: Options,
        *,
        allocation: str,
        entries: int,
    ) -> Self:
        """Return the runner for a replay's options."""
        return cls(
            lab,
            routed,
            allocation=allocation,
            entries=entries,
            seed=options.seed,
            backend=options.backend,
            builder=options.builder,
            framework=options.framework,
            framework_python=options.framework_python,
        )

    @property
    def warning(self) -> str | None:
        """A warning if delays on this machine may say little about the switches; else None."""
        return self._plan.warning

    def __enter__(self) -> Self:
        """Start the lab. Raises `RunError` or `InputError` in one line."""
        self._affinity = os.sched_getaffinity(0)
        request = BuildRequest(
            lab=self._lab.path.resolve(),
            cabling=self._lab.cabling,
            flows=self._flows,
            paths=self._paths,
            allocation=self._allocation,
            entries=self._entries,
            cores=self._plan,
            seed=self._seed,
            backend=self._backend,
            framework=self._framework,
            framework_python=self._framework_python,
            as_printed=self._lab.is_as_printed,
        )
        self._confinement, request = start(self._lab, request, self._builder)
        try:
            os.sched_setaffinity(0, self._plan.others)
            hand_in(self._lab, self._confinement.pid)
            self._confinement.request(request)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything that was started."""
        self._end()

    def run(
        self,
        traffic: Sequence[Sender],
        *,
        seconds: float,
        seed: int,  # noqa: ARG002
        echoes_per_s: float = 0,
    ) -> RunRecords:
        """Send the traffic for so many seconds and return every packet of the observed flows.

        mgen takes no seed and the machine has its own timing, so no two live runs are the same. Raises
        `RunError` if the run cannot be carried out.
        """
        refuse_others(traffic, self.carries, self._mode)
        records = self._request(
            TrafficRequest(traffic=tuple(traffic), seconds=seconds, echoes_per_s=echoes_per_s)
        )
        if not isinstance(records, RunRecords):
            raise RunError("the lab answered with something else than records")
        return records

    def status(self) -> LabStatus:
        """Return the lab's status. Raises `RunError` if one of its programs has ended."""
        status = self._request(StatusRequest())
        if not isinstance(status, LabStatus):
            raise RunError("the lab answered with something else than its status")
        return status

    @property
    def _mode(self) -> str:
        return "hardware" if self._lab.behind(Backend.HARDWARE) else "live"

    def _request(self, message: object) -> object:
        if self._confinement is None:
            raise RunError("the live lab is not running: use LiveRunner in a 'with' statement")
        return self._confinement.request(message)

    def _end(self) -> None:
        if self._confinement is not None:
            self._confinement.close()
            self._confinement = None
        os.sched_setaffinity(0, self._affinity)
