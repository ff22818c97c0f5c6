"""The commands of `--export taprio`: iproute2's tc accepts them, and so does a kernel that has taprio."""

from __future__ import annotations

import json
import subprocess

import pytest
from live_harness import needs_namespaces
from scheduling import clock

from loko.schedule.gates.gate_list import PortGates, gate_lists
from loko.schedule.gates.options import GateOptions
from loko.schedule.gates.taprio import taprio_scripts
from loko.schedule.lab_schedule import SchedulingOptions, schedule
from loko.schedule.timed_flow import TimedFlow
from loko.solvers import Solver, solver_named
from loko.topology.lab import load_lab

pytestmark = [pytest.mark.namespaces, pytest.mark.waits, needs_namespaces]

NO_TAPRIO = "Error: Specified qdisc kind is unknown."
"""The kernel's answer: tc has then parsed the whole command."""


@pytest.fixture
def gates() -> tuple[PortGates, str]:
    """Return the gates of host H1 and the script for them."""
    flows = [TimedFlow("a", "H1", "H3", 1001, 5001, 306, None, None)]
    options = SchedulingOptions(slots=3, guard_ns=2_000)
    result = schedule(load_lab("two-switch"), flows, options, solver_named(Solver.HIGHS), clock())
    lists = gate_lists(result, GateOptions())
    (port,) = lists.ports["H1"]
    return port, taprio_scripts(lists)["H1.sh"]


def configured(port: PortGates, script: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a network namespace of its own and show what the kernel has of it."""
    queues = "numtxqueues 8"
    commands = (
        f"ip link add {port.interface} {queues} type veth peer name far {queues}\n{script}\n"
        f"tc -j qdisc show dev {port.interface} root"
    )
    return subprocess.run(
        ["unshare", "--net", "bash", "-ec", commands], capture_output=True, text=True, check=False, timeout=60
    )


def test_tc_accepts_the_commands(gates) -> None:
    done = configured(*gates)
    assert done.returncode == 0 or done.stderr.splitlines()[0] == NO_TAPRIO, done.stderr


def test_tc_refuses_other_commands(gates) -> None:
    port, script = gates
    done = configured(port, script.replace(" S 80 ", " Q 80 "))
    assert done.returncode != 0
    assert NO_TAPRIO not in done.stderr


def test_the_kernel_has_the_list(gates) -> None:
    port, script = gates
    done = configured(port, script)
    if NO_TAPRIO in done.stderr:
        pytest.skip("this kernel has no taprio (CONFIG_NET_SCH_TAPRIO)")
    assert done.returncode == 0, done.stderr
    options = json.loads(done.stdout)[0]["options"]
    held = options.get("admin", options)["schedule"] if "schedule" not in options else options["schedule"]
    assert [(int(row["gatemask"], 16), row["interval"]) for row in held] == list(port.entries)
