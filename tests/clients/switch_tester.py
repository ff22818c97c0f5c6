"""Run os-ken's switch tester, in OpenFlow 1.0 or 1.3, against a board; a second board is its tester switch.

Each process of the tester has its own namespace with two boards, ports 1 to 3 of which are cabled to each
other, as the tester expects. `make clients` installs it; no part of it belongs to the testbed.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from programs import HERE, INSTALLED, Program

from loko_testbed.live.one_board import UNHURRIED, BenchmarkBoards, Namespace, board_table

FOLDERS: Final = {"1.0": "of10", "1.3": "of13"}
"""The tester's folder of files for each version of OpenFlow."""
PORTS: Final = (1, 2, 3)
TARGET_MAC, TESTER_MAC = "00:00:00:00:00:01", "00:00:00:00:00:02"
CONTROLLER_PORT = 6633
TIMEOUT_S = 3600.0
_WIRE_VERSIONS = {"1.0": 1, "1.3": 4}
_PYTHON = INSTALLED / "python" / "bin" / "python"
_FILE = re.compile(r"^(?P<file>\w+(?:/\w+)+)$")
_RESULT = re.compile(r"^    (?P<case>\S.*?) +(?P<result>OK|ERROR)$")
_MESSAGE = re.compile(r"^        (?P<message>\S.*)$")


@dataclass(frozen=True, slots=True)
class Case:
    """One test case and its outcome."""

    file: str
    """The path of its file in the folder of the version, without suffix, such as `match/03_ETH_DST`."""
    number: int
    """Its position in the file, from 1."""
    description: str
    message: str
    """The tester's message if the case failed; empty if it passed."""


def missing() -> str | None:
    """Return why it cannot run here, and how to fix that; None if it can."""
    if not _PYTHON.exists() or _suite() is None:
        return Program(None, lambda *_: ()).missing()
    return None


def cases(version: str) -> dict[str, int]:
    """Return the number of cases in each file of the tester for a version of OpenFlow such as `1.0`."""
    return {file: len(content) - 1 for file, content in _contents(version)}


def run(
    program: Path, folder: Path, files: Sequence[str], *, version: str, quirks: str, at_once: int
) -> list[Case]:
    """Test a board with `quirks` using these files, divided among `at_once` processes of the tester."""
    shares = [share for first in range(at_once) if (share := files[first::at_once])]
    contents = dict(_contents(version))
    with ThreadPoolExecutor(max(len(shares), 1)) as pool:
        runs = [
            pool.submit(
                _run,
                program,
                folder / str(number),
                {file: contents[file] for file in share},
                version=version,
                quirks=quirks,
            )
            for number, share in enumerate(shares)
        ]
        return [case for done in runs for case in done.result()]


def _run(
    program: Path, folder: Path, contents: Mapping[str, list[object]], *, version: str, quirks: str
) -> list[Case]:
    for file, (_, *rest) in contents.items():
        copy = (folder / "files" / file).with_suffix(".json")
        copy.parent.mkdir(parents=True, exist_ok=True)
        # The tester drops all but one of the files that share a title, as some do; a path is unique.
        copy.write_text(json.dumps([file, *rest]))
    controller = f"127.0.0.1:{CONTROLLER_PORT}"
    boards = "".join(
        board_table(
            name,
            controller,
            {port: f"{name}-eth{port}" for port in PORTS},
            settings=f'mac = "{mac}"\nopenflow_version = {wire_version}\nquirks = "{behaviour}"\n',
        )
        for name, mac, behaviour, wire_version in (
            ("s1", TARGET_MAC, quirks, _WIRE_VERSIONS[version]),
            ("t1", TESTER_MAC, "spec", _WIRE_VERSIONS["1.3"]),
        )
    )
    cables = [(f"s1-eth{port}", f"t1-eth{port}") for port in PORTS]
    with Namespace(cables) as place, BenchmarkBoards(program, place, folder, boards, process=UNHURRIED):
        options = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(CONTROLLER_PORT)]
        options += ["--test-switch-target-version", f"openflow{version.replace('.', '')}"]
        options += ["--test-switch-dir", str(folder / "files"), "os_ken.tests.switch.tester"]
        command = [str(_PYTHON), str(HERE / "start_early.py"), "os_ken", *options]
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", *place.command(*command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    (folder / "tester.log").write_text(done.stdout)
    return read(done.stdout)


def read(log: str) -> list[Case]:
    """Parse the tester's log into cases."""
    found: list[Case] = []
    file, number = "", 0
    for line in log.splitlines():
        if line.startswith("---  Test end"):
            break
        if row := _FILE.match(line):
            file, number = row["file"], 0
        elif row := _RESULT.match(line):
            number += 1
            found.append(Case(file, number, row["case"], "" if row["result"] == "OK" else "failed"))
        elif found and found[-1].message == "failed" and (row := _MESSAGE.match(line)):
            found[-1] = Case(file, number, found[-1].description, row["message"])
    return found


def _suite() -> Path | None:
    return next((INSTALLED / "python" / "lib").glob("python3*/site-packages/os_ken/tests/switch"), None)


def _contents(version: str) -> Iterator[tuple[str, list[object]]]:
    suite = _suite()
    assert suite is not None, missing()
    folder = suite / FOLDERS[version]
    for path in sorted(folder.rglob("*.json")):
        yield path.relative_to(folder).with_suffix("").as_posix(), json.loads(path.read_text())
