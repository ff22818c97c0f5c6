"""Instance data of gate control lists are valid by IEEE's modules, as libyang's yanglint judges them.

The modules' texts are IEEE's and not part of this project: `LOKO_YANG` names a clone of YangModels/yang.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scheduling import clock

from loko.schedule.gates.gate_list import gate_lists
from loko.schedule.gates.options import GateOptions
from loko.schedule.gates.yang import content_data
from loko.schedule.lab_schedule import SchedulingOptions, schedule
from loko.schedule.timed_flow import TimedFlow
from loko.solvers import Solver, solver_named
from loko.topology.lab import load_lab

MODULES = os.environ.get("LOKO_YANG", "")
FOLDERS = (
    "standard/ieee/published/802.1",
    "standard/ieee/published/802",
    "standard/ietf/RFC",
    "standard/iana",
)
LOADED = (
    *("ietf-interfaces", "iana-if-type", "ieee802-dot1q-bridge"),
    *("ieee802-dot1q-sched", "ieee802-dot1q-sched-bridge"),
)

pytestmark = [
    pytest.mark.skipif(not MODULES, reason="LOKO_YANG names no clone of YangModels/yang"),
    pytest.mark.skipif(shutil.which("yanglint") is None, reason="needs yanglint: libyang2-tools"),
]


@pytest.fixture(scope="module")
def content() -> dict:
    flows = [
        TimedFlow("a", "H1", "H3", 1001, 5001, 306, None, None),
        TimedFlow("b", "H2", "H4", 1002, 5001, 306, None, None),
    ]
    options = SchedulingOptions(slots=4, guard_ns=2_000)
    result = schedule(load_lab("two-switch"), flows, options, solver_named(Solver.HIGHS), clock())
    return content_data(gate_lists(result, GateOptions()).ports["s2"])


def complaints(folder: Path, content: dict) -> str:
    """Return what yanglint objects to in this configuration; empty if it is valid."""
    file = folder / "content.json"
    file.write_text(json.dumps(content))
    paths = [argument for part in FOLDERS for argument in ("-p", str(Path(MODULES) / part))]
    modules = [str(found[-1]) for name in LOADED if (found := modules_named(name))]
    assert len(modules) == len(LOADED), "the clone lacks modules"
    done = subprocess.run(
        ["yanglint", *paths, "-t", "config", *modules, str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stderr if done.returncode else ""


def modules_named(name: str) -> list[Path]:
    """Return the files of a module, its newest revision last."""
    found = [path for part in FOLDERS for path in (Path(MODULES) / part).glob(f"{name}*.yang")]
    return sorted(path for path in found if path.stem.partition("@")[0] == name)


def test_the_configuration_is_valid(tmp_path, content) -> None:
    assert complaints(tmp_path, content) == ""


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("supported-list-max", 1, "must not be greater"),
        ("gate-enabled", "yes", "gate-enabled"),
        ("cycle-time", 5, "cycle-time"),
    ],
)
def test_other_configurations_are_not(tmp_path, content, key, value, complaint) -> None:
    changed = json.loads(json.dumps(content))
    port = changed["ietf-interfaces:interfaces"]["interface"][0]["ieee802-dot1q-bridge:bridge-port"]
    port["ieee802-dot1q-sched-bridge:gate-parameter-table"][key] = value
    assert complaint in complaints(tmp_path, changed)
