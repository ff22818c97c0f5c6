"""Run Faucet's own tests against emulated boards and compare the outcomes with `faucet-suite.yml`.

python tests/clients/faucet_trial.py [--mode spec] [TEST ...]      as root, after `make clients`
python tests/clients/faucet_trial.py --write                       writes the table into docs/clients.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import outcomes
import yaml
from outcomes import DOCUMENT, HERE
from programs import INSTALLED

from benchmarks.builds import build

SUITE = INSTALLED / "faucet-suite"
MODES = ("firmware", "spec")
PASSES, FAILS = "passes", "fails"
BEGIN, END = "<!-- faucet: begin -->\n", "<!-- faucet: end -->\n"
TIMEOUT_S = 280
_TRIES = 3
"""On a busy machine a test may fail by chance; a failure caused by the board occurs every time."""
_NAMESPACES = ["unshare", "--net", "--mount", "--fork", "--kill-child"]
_PLACE = 'mount -t sysfs sysfs /sys; ip link set lo up; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one class of tests, by mode."""

    about: str
    firmware: str
    spec: str
    quirks: tuple[int, ...] = ()
    why: str = ""

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Outcome:
        outcome = cls(**(dict(data) | {"quirks": tuple(data.get("quirks", ()))}))
        assert {outcome.firmware, outcome.spec} <= {PASSES, FAILS}, data
        assert outcome.why or outcome.firmware == outcome.spec == PASSES, f"why does it fail? {data}"
        return outcome

    def expected(self, mode: str) -> str:
        return self.spec if mode == "spec" else self.firmware


def load() -> dict[str, Outcome]:
    """Return the classes of tests by name."""
    data = yaml.safe_load((HERE / "faucet-suite.yml").read_text())
    return {name: Outcome.parse(outcome) for name, outcome in data.items()}


def missing() -> str | None:
    """Return what is missing on this machine, if anything."""
    for needed in (SUITE / "source", SUITE / "libraries", Path("/usr/bin/mnexec"), Path("/usr/bin/dash")):
        if not needed.exists():
            return f"{needed} is not installed: run 'make clients' (set-up says why if it cannot be had here)"
    return None


def attempt(name: str, mode: str, emulator: Path) -> list[str]:
    """Run a class of tests; return the messages of its failures."""
    python = INSTALLED / "faucet" / "bin" / "python"
    environment = os.environ | {
        "PATH": f"{SUITE / 'programs'}:{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(SUITE / "libraries"),
    }
    script = [str(HERE / "start_faucet_suite.py"), str(SUITE / "source"), str(emulator), mode, name]
    command = [*_NAMESPACES, "sh", "-c", _PLACE, "sh", str(python), "-W", "ignore", *script]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return [f"no result within {TIMEOUT_S} s"]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"test"')]
    return [said for result in results for said in result["said"]] if results else [done.stderr[-2000:]]


def difference(name: str, outcome: Outcome, mode: str, emulator: Path) -> str | None:
    """Describe how the outcome of a class of tests differs from the recorded one; None if it does not."""
    for _ in range(_TRIES):
        said = attempt(name, mode, emulator)
        if (FAILS if said else PASSES) == outcome.expected(mode):
            return None
    return f"{name}, {mode}: not {outcome.expected(mode)}: {said}"


def render(recorded: Mapping[str, Outcome]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = ["| test | what it does | firmware | spec | quirks | why |", "|---|---|---|---|---|---|"]
    for name, outcome in recorded.items():
        firmware, spec = (it if it == PASSES else f"**{it}**" for it in (outcome.firmware, outcome.spec))
        quirks = ", ".join(str(number) for number in outcome.quirks)
        lines.append(f"| `{name}` | {outcome.about} | {firmware} | {spec} | {quirks} | {outcome.why} |")
    return "\n".join(lines) + "\n"


def written(document: str) -> str:
    """Return the document with the current table."""
    return outcomes.written(document, render(load()), BEGIN, END)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="classes of tests; all that are recorded")
    parser.add_argument("--mode", choices=MODES, default="firmware")
    parser.add_argument("--write", action="store_true", help="write the table into docs/clients.md")
    chosen = parser.parse_args(arguments)
    recorded = load()
    if chosen.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text()))
        return 0
    if lacks := missing():
        print(lacks, file=sys.stderr)
        return 2
    emulator, status = build(), 0
    for name in chosen.tests or recorded:
        line = difference(name, recorded[name], chosen.mode, emulator)
        print(line or f"{name}: {recorded[name].expected(chosen.mode)}, as recorded", flush=True)
        status |= line is not None
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
