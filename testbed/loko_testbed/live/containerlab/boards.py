"""The boards of a lab in containers: each has an emulator, which is reached through Docker."""

from __future__ import annotations

import json
from typing import Final

from loko.topology.lab import Lab
from loko_testbed.live.boards import BoardsReport
from loko_testbed.live.containerlab.deployment import in_container
from loko_testbed.live.containerlab.topology import REPORT, container
from loko_testbed.simulation.runner import RunError

_ASK: Final = (
    f"rm -f {REPORT}; pid=$(pidof zodiac-fx) || exit 3; kill -USR1 $pid; "
    f"for _ in $(seq 300); do [ -s {REPORT} ] && exec cat {REPORT}; sleep 0.1; done; exit 4"
)
"""Shell commands that have an emulator write its report anew, and print it."""


class ContainerBoards:
    """The running boards, each an emulator in a container of its own."""

    def __init__(self, lab: Lab) -> None:
        """Take the boards, which run already (see `deployment`)."""
        self._lab = lab

    def wait_for_real_boards(self) -> None:
        """Do nothing: there are no real boards in containers."""

    def consoles(self) -> dict[str, str]:
        """Return none: the consoles' devices are in the containers, at /run/console."""
        return {}

    def report(self) -> BoardsReport:
        """Report on the boards. Raises `RunError` if one has ended."""
        return BoardsReport.joined([self._report_of(switch) for switch in self._lab.switches])

    def _report_of(self, switch: str) -> BoardsReport:
        name = container(self._lab, switch)
        try:
            return BoardsReport.parse(json.loads(in_container(name, "/bin/sh", "-c", _ASK)))
        except (RunError, ValueError) as error:
            raise RunError(f"{name}: no report of its emulator ({error}): see 'docker logs {name}'") from None
