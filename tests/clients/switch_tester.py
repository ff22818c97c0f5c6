"""Run os-ken's switch tester with its 1.3 files against a board; a second board is its tester switch.

python tests/clients/switch_tester.py [--firmware] [PART …]

Runs the files whose path contains a PART and prints what fails. All matches and actions take ten minutes;
groups and meters take half a minute for each case. Ports 1 to 3 of the boards are cabled to each other, as
the tester expects. Known failures and their reasons are in `switch_tester.yml`. Needs root, `make setup` and
`make clients`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from programs import HERE, INSTALLED, Program

from benchmarks.one_board import UNHURRIED, Boards, Namespace, board_table, built

OUTCOMES = HERE / "switch_tester.yml"
PORTS = (1, 2, 3)
TARGET_MAC, TESTER_MAC = "00:00:00:00:00:01", "00:00:00:00:00:02"
CONTROLLER_PORT = 6633
PATIENCE_S = 3600.0
_PYTHON = INSTALLED / "python" / "bin" / "python"
_RESULT = re.compile(r"^    (?P<case>\S.*?) +(?P<result>OK|ERROR)$")
_REASON = re.compile(r"^        (?P<reason>\S.*)$")


@dataclass(frozen=True, slots=True)
class Case:
    """One test case and its outcome."""

    file: str
    """The tester's own name for the file, such as `match: 03_ETH_DST`."""
    description: str
    reason: str
    """Why the case failed; empty if it passed."""


def files() -> Path | None:
    """Return the folder of the tester's files, if they are installed."""
    return next((INSTALLED / "python" / "lib").glob("python3*/site-packages/os_ken/tests/switch/of13"), None)


def missing() -> str | None:
    """Return why it cannot run here, and how to fix that; None if it can."""
    if not _PYTHON.exists() or files() is None:
        return Program(None, lambda *_: ()).missing()
    return None


def run(program: Path, folder: Path, chosen: list[Path], *, quirks: str) -> list[Case]:
    """Test a board with `quirks` using these files. The tester switch always follows the specification."""
    work = folder / "files"
    for path in chosen:
        copy = work / path.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    controller = f"127.0.0.1:{CONTROLLER_PORT}"
    boards = "".join(
        board_table(
            name,
            controller,
            {port: f"{name}-eth{port}" for port in PORTS},
            settings=f'mac = "{mac}"\nopenflow_version = 4\nquirks = "{behaviour}"\n',
        )
        for name, mac, behaviour in (("s1", TARGET_MAC, quirks), ("t1", TESTER_MAC, "spec"))
    )
    cables = [(f"s1-eth{port}", f"t1-eth{port}") for port in PORTS]
    with Namespace(cables) as place, Boards(program, place, folder, boards, process=UNHURRIED):
        options = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(CONTROLLER_PORT)]
        options += ["--test-switch-dir", str(work), "os_ken.tests.switch.tester"]
        command = [str(_PYTHON), str(HERE / "start_early.py"), "os_ken", *options]
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", *place.command(*command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    (folder / "tester.log").write_text(done.stdout)
    return read(done.stdout)


def read(log: str) -> list[Case]:
    """Parse the tester's log into cases."""
    cases: list[Case] = []
    file = ""
    for line in log.splitlines():
        if line.startswith("---  Test end"):
            break
        if row := _RESULT.match(line):
            cases.append(Case(file, row["case"], "" if row["result"] == "OK" else "failed"))
        elif cases and cases[-1].reason == "failed" and (row := _REASON.match(line)):
            cases[-1] = Case(file, cases[-1].description, row["reason"])
        elif re.match(r"^(match|action|group|meter): ", line):
            file = line.strip()
    return cases


def explained() -> dict[str, dict[str, Any]]:
    """Return the files with cases that fail on a board with `quirks = "spec"`, and why."""
    known = yaml.safe_load(OUTCOMES.read_text())
    assert isinstance(known, dict)
    return known


def main() -> None:
    """Run the files that the arguments select."""
    suite = files()
    if suite is None:
        sys.exit(f"switch_tester: {missing()}")
    quirks = "firmware" if "--firmware" in sys.argv else "spec"
    parts = [part for part in sys.argv[1:] if not part.startswith("--")]
    chosen = [
        path for path in sorted(suite.rglob("*.json")) if not parts or any(it in str(path) for it in parts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        cases = run(built() / "zodiac-fx", Path(folder), chosen, quirks=quirks)
        if "--log" in sys.argv:
            sys.stdout.write((Path(folder) / "tester.log").read_text())
    for case in cases:
        if case.reason:
            print(f"{case.file}: {case.description}: {case.reason}")
    failed = sum(bool(case.reason) for case in cases)
    print(f"{len(cases)} cases of {len(chosen)} files, {failed} failed")


if __name__ == "__main__":
    main()
