"""The core of loko is pure: it never loads os-ken, a web framework, socket servers or a command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from packages import imported_names

import loko

PACKAGE = Path(loko.__file__).parent
SHELL = {"control", "service", "solvers"}
"""Packages that may communicate with the outside."""
OS_KEN_MODULES = {"control/os_ken_messages.py", "control/os_ken_messages13.py"}
PROFILE_READERS = {"switch_model/device.py", "topology/schemas.py"}
"""Modules that read profiles, whose one schema is in Rust, through the module `switch_emulator`."""
FORBIDDEN = (
    "os_ken",
    "flask",
    "fastapi",
    "starlette",
    "aiohttp",
    "typer",
    "rich",
    "loko_testbed",
)
CLOCKS_AND_THREADS = {"time", "datetime", "threading", "asyncio", "socket", "subprocess", "random"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def is_core(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py") not in SHELL


def test_core_loads_nothing_forbidden() -> None:
    core = [
        ".".join(["loko", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in modules()
        if is_core(path)
    ]
    assert {
        "loko.switch_model.calculus",
        "loko.switch_model.service_curve",
        "loko.admission",
        "loko.admission.planning",
    } <= set(core)
    script = f"import importlib, json, sys\nfor name in {core}: importlib.import_module(name)\n"
    script += "print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", script], text=True))
    assert [name for name in loaded if name.split(".")[0] in FORBIDDEN] == []


def test_tables_logic_loads_no_os_ken() -> None:
    script = (
        "import loko.control.fixed_tables, sys; print([name for name in sys.modules if 'os_ken' in name])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


def test_arrows_point_one_way() -> None:
    for path in modules():
        relative = path.relative_to(PACKAGE).as_posix()
        tops = {name.split(".")[0] for name in imported_names(path)}
        assert "loko_testbed" not in tops, relative
        assert ("switch_emulator" in tops) == (relative in PROFILE_READERS), relative
        assert ("os_ken" in tops) == (relative in OS_KEN_MODULES), relative
        if (
            is_core(path) and relative != "__init__.py"
        ):  # the front door names everything, but imports it only on demand
            assert not tops & {*FORBIDDEN, *CLOCKS_AND_THREADS}, relative


PURE_PARTS_OF_THE_SHELL = (
    *("control/fixed_tables.py", "control/notices.py", "control/driver.py", "control/wire.py"),
    *("control/access.py", "control/session_limits.py", "control/relay_protocol.py"),
    *("control/address.py", "control/entries.py", "control/vlan_stack.py"),
    *("service/flow_manager.py", "service/outcome.py", "service/views.py", "service/admitter.py"),
    *("service/slots.py", "service/connections.py", "service/hosts.py"),
    *("service/metrics.py", "service/client_metrics.py", "service/counters.py"),
)


def test_logic_takes_time_as_an_argument() -> None:
    for name in PURE_PARTS_OF_THE_SHELL:
        tops = {imported.split(".")[0] for imported in imported_names(PACKAGE / name)}
        assert not tops & {*CLOCKS_AND_THREADS, *FORBIDDEN, "sqlite3"}, name


def test_services_logic_loads_neither_framework() -> None:
    modules = "loko.service.views, loko.control.relay_protocol"
    script = f"import {modules}, json, sys; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", script], text=True))
    assert not {name.split(".")[0] for name in loaded} & {"os_ken", "fastapi", "uvicorn", "sqlite3"}


def test_admission_and_scheduling_know_nothing_of_each_other() -> None:
    """Admitting flows one by one, or all at once: neither method depends on the other."""
    for room, other in (("admission", "schedule"), ("schedule", "admission")):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            assert not {name for name in imported_names(path) if f"loko.{other}" in name}, path
