"""Run os-ken's switch tester against the emulated board and compare the outcomes with `switch_tester.yml`.

python tests/clients/switch_tester_compare.py [--version 1.0] [--mode spec] [PART ...]

Run it as root, after `make clients`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import switch_tester
from switch_tester_outcomes import MODES, Suite, differences, load

from benchmarks.builds import build

_TRIES = 3
"""On a busy machine a case may fail by chance; a failure caused by the board occurs every time."""


def compare(
    suite: Suite, version: str, mode: str, files: Sequence[str], program: Path, folder: Path, *, at_once: int
) -> list[str]:
    """Run files, again those that differ; return the last differences."""
    differing: list[tuple[str, str]] = []
    for attempt in range(_TRIES):
        observed = switch_tester.run(
            program, folder / f"{mode}-{attempt}", files, version=version, quirks=mode, at_once=at_once
        )
        differing = list(differences(suite, mode, files, observed))
        files = sorted({file for file, _ in differing})
        if not files:
            break
    return [line for _, line in differing]


def unrecorded(suite: Suite, version: str) -> list[str]:
    """Return how the files of the installed tester differ from those that are recorded."""
    installed, recorded = switch_tester.cases(version), suite.files
    return [
        f"{file}: {installed.get(file, 0)} cases, {recorded.get(file, 0)} recorded"
        for file in sorted(set(installed) | set(recorded))
        if installed.get(file) != recorded.get(file)
    ]


def main() -> int:
    """Compare the chosen files; return the exit status, 1 if anything differs."""
    suites = load()
    parser = argparse.ArgumentParser(description="Compare os-ken's switch tester with what is recorded.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="of a file's path; default: all but those left out"
    )
    parser.add_argument("--version", choices=suites, action="append", help="of OpenFlow; default: all")
    parser.add_argument("--mode", choices=MODES, action="append", help="value of `quirks`; default: all")
    parser.add_argument("--at-once", type=int, default=8, help="processes: each waits most of its time")
    asked = parser.parse_args()
    chosen = {
        version: [file for file in suites[version].files if any(part in file for part in asked.parts)]
        if asked.parts
        else list(suites[version].counts)
        for version in asked.version or suites
    }
    if not any(chosen.values()):
        parser.error(f"no file's path contains {' or '.join(asked.parts)}")
    problem = switch_tester.missing() or (
        "it makes network namespaces: run it as root" if os.geteuid() else None
    )
    if problem:
        print(f"switch tester: {problem}", file=sys.stderr)
        return 2
    lines, count, program = [], 0, build()
    for version, files in chosen.items():
        suite = suites[version]
        lines += [f"OpenFlow {version}: {line}" for line in unrecorded(suite, version)]
        for mode in asked.mode or MODES:
            count += sum(suite.files[file] for file in files)
            with TemporaryDirectory(prefix="switch-tester-") as folder:
                found = compare(suite, version, mode, files, program, Path(folder), at_once=asked.at_once)
            lines += [f"OpenFlow {version}, {mode}: {line}" for line in found]
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"switch tester: of {count} cases, {len(lines)} lines differ from tests/clients/switch_tester.yml")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
