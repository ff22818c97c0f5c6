"""The outcomes of os-ken's switch tester, as recorded in `switch_tester.yml`, and their tables.

python tests/clients/switch_tester_outcomes.py      writes them into docs/clients.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import outcomes
import yaml
from outcomes import DOCUMENT, HERE
from switch_tester import Case

OUTCOMES = HERE / "switch_tester.yml"
BEGIN, END = "<!-- switch_tester: begin -->\n", "<!-- switch_tester: end -->\n"
MODES: Final = ("spec", "firmware")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A reason why some cases fail."""

    modes: tuple[str, ...]
    """Values of `quirks` with which they fail."""
    why: str
    quirks: tuple[int, ...]
    """Numbers of `docs/quirks.md`; empty if the firmware is not the cause."""
    messages: tuple[str, ...]
    """How the tester's message begins; one of these."""
    cases: Mapping[str, frozenset[int]]
    """Positions of these cases in each file, from 1."""

    @classmethod
    def parse(cls, data: Mapping[str, Any], counts: Mapping[str, int]) -> Self:
        """Create a deviation from an entry of the file; `counts` has the number of cases in each file."""
        deviation = cls(
            modes=tuple(data["modes"]),
            why=data["why"],
            quirks=tuple(data.get("quirks", ())),
            messages=tuple(data["messages"]),
            cases={
                file: frozenset(range(1, counts[file] + 1) if numbers == "all" else numbers)
                for file, numbers in data["cases"].items()
            },
        )
        if not deviation.why or not deviation.messages or not set(deviation.modes) <= set(MODES):
            raise ValueError(f"a deviation needs modes, messages and a reason: {sorted(deviation.cases)}")
        return deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The tester's files for one version of OpenFlow."""

    counts: Mapping[str, int]
    """Number of cases in each file that is run. Those that no deviation names pass."""
    deviations: tuple[Deviation, ...]
    left_out: Mapping[str, int]
    """Number of cases in each file that is run only if it is named."""
    left_out_why: str

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Create a suite from a section of the file."""
        left_out = data.get("left_out", {})
        suite = cls(
            counts=data["counts"],
            deviations=tuple(Deviation.parse(entry, data["counts"]) for entry in data["deviations"]),
            left_out=left_out.get("counts", {}),
            left_out_why=left_out.get("why", ""),
        )
        for mode in MODES:
            suite.failures(mode)
        return suite

    @property
    def files(self) -> dict[str, int]:
        """The number of cases in each file, also in those that are not run unless they are named."""
        return {**self.counts, **self.left_out}

    def failures(self, mode: str) -> dict[tuple[str, int], Deviation]:
        """Return the deviation of each case that fails, by file and position."""
        failures: dict[tuple[str, int], Deviation] = {}
        for deviation in self.deviations:
            if mode not in deviation.modes:
                continue
            for file, numbers in deviation.cases.items():
                for number in numbers:
                    if not 1 <= number <= self.counts[file] or (file, number) in failures:
                        raise ValueError(f"{file}: case {number} does not exist, or has two reasons")
                    failures[file, number] = deviation
        return failures


def load() -> dict[str, Suite]:
    """Return the suites by version of OpenFlow."""
    return {version: Suite.parse(data) for version, data in yaml.safe_load(OUTCOMES.read_text()).items()}


def differences(
    suite: Suite, mode: str, files: Sequence[str], observed: Sequence[Case]
) -> Iterator[tuple[str, str]]:
    """Yield each file whose cases differ from the recorded outcomes, with a description of the difference."""
    failures = suite.failures(mode)
    for file in sorted({*files} | {case.file for case in observed}):
        cases = [case for case in observed if case.file == file]
        recorded = suite.files.get(file, 0)
        if len(cases) != recorded:
            yield file, f"{file}: {len(cases)} cases, {recorded} recorded"
        for case in cases:
            deviation = failures.get((file, case.number))
            expected = deviation.messages if deviation else ()
            if bool(case.message) != bool(expected) or not case.message.startswith(expected or ("",)):
                yield (
                    file,
                    f"{file}, case {case.number} ({case.description}): {case.message or 'OK'};"
                    f" recorded: {' or '.join(expected) or 'OK'}",
                )


def render(suites: Mapping[str, Suite]) -> str:
    """Return the outcomes as Markdown tables."""
    return "\n".join(_section(version, suite) for version, suite in suites.items())


def _section(version: str, suite: Suite) -> str:
    total = sum(suite.counts.values())
    passed = {mode: total - len(suite.failures(mode)) for mode in MODES}
    passes = " and ".join(f'{count} with `quirks = "{mode}"`' for mode, count in passed.items())
    lines = [f"### OpenFlow {version}", "", f"Of {total} cases {passes} pass.", ""]
    if suite.left_out:
        left_out = sum(suite.left_out.values())
        lines += [f"{left_out} cases are not run unless they are named: {suite.left_out_why}", ""]
    lines += [
        "| fails with | quirks | cases | why | files |",
        "|---|---|---|---|---|",
        *(_row(suite, deviation) for deviation in suite.deviations),
    ]
    return "\n".join(lines) + "\n"


def _row(suite: Suite, deviation: Deviation) -> str:
    count = sum(map(len, deviation.cases.values()))
    every = set(deviation.cases) == set(suite.counts)
    files = "all" if every else ", ".join(f"`{file}`" for file in deviation.cases)
    quirks = ", ".join(map(str, deviation.quirks)) or "none"
    return f"| {', '.join(deviation.modes)} | {quirks} | {count} | {deviation.why} | {files} |"


def written(document: str) -> str:
    """Return the document with the recorded outcomes."""
    return outcomes.written(document, render(load()), BEGIN, END)


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
