"""Run OFTest's standard tests against the emulated board and compare the outcomes with `oftest.yml`.

python tests/clients/oftest_compare.py [--mode spec] [TEST ...]      as root, after `make clients`
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import oftest_trial
from oftest_outcomes import Suite, load
from oftest_trial import FAILS, PASSES, Observed

from benchmarks.builds import build

SETTINGS = {"firmware": "", "spec": 'quirks = "spec"\n'}
_TRIES = 3
"""On a busy machine a test may fail by chance; a failure caused by the board occurs every time."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def difference(suite: Suite, test: str, mode: str, observed: Observed) -> str | None:
    """Describe how the outcome of a test differs from the recorded one; None if it does not."""
    reason = suite.fails.get(test)
    if mode == "firmware":
        fails = reason is not None
    else:
        fails = test in suite.fails_with_specification or (reason is not None and bool(reason.specification))
    if observed.result != (FAILS if fails else PASSES):
        return f"{test}: {observed.result}, not {FAILS if fails else PASSES}: {observed.said}"
    if reason is not None and mode == "firmware":
        said, *recorded = (
            _NUMBER.sub("#", words.strip()) for words in (observed.said, reason.tests[test], *reason.also)
        )
        if said not in recorded:
            return f"{test}: fails with {observed.said!r}, not {reason.tests[test]!r}"
    return None


def compare(
    suite: Suite, version: str, test: str, mode: str, emulator: Path, folder: Path
) -> tuple[str | None, Observed]:
    """Run a test, again if it differs; return the last difference, if any, and the last observation."""
    for attempt in range(_TRIES):
        observed = oftest_trial.attempt(
            test, version, SETTINGS[mode], emulator, folder / f"{test}-{attempt}", hosts=suite.hosts(test)
        )
        line = difference(suite, test, mode, observed)
        if line is None:
            break
    return line, observed


def differences(
    tests: Sequence[str], mode: str, emulator: Path, folder: Path, *, at_once: int
) -> Iterator[str]:
    """Yield what differs, test by test; if no test is named, all are run."""
    for version, suite in load().items():
        there = oftest_trial.standard_tests(version)
        yield from (f"{test}: not recorded" for test in set(there) - set(suite.tests))
        yield from (f"{test}: OFTest has no such test" for test in set(suite.tests) - set(there))
        wanted = [test for test in suite.tests if not tests or test in tests]
        with ThreadPoolExecutor(at_once) as pool:
            runs = [
                pool.submit(compare, suite, version, test, mode, emulator, folder / version)
                for test in wanted
            ]
            for number, run in enumerate(runs, 1):
                line, _ = run.result()
                print(f"oftest: {number} of {len(wanted)}: {wanted[number - 1]}", file=sys.stderr)
                if line is not None:
                    yield line


def main() -> int:
    """Compare the chosen tests; return the exit status, 1 if anything differs."""
    parser = argparse.ArgumentParser(
        description="Compare what comes of OFTest's tests with what is recorded."
    )
    parser.add_argument("tests", nargs="*", metavar="TEST", help="such as basic.Echo; default: all")
    parser.add_argument("--mode", choices=SETTINGS, default="firmware")
    parser.add_argument("--at-once", type=int, default=3, help="tests at once: each waits most of its time")
    asked = parser.parse_args()
    known = {test for suite in load().values() for test in suite.tests}
    if unknown := set(asked.tests) - known:
        parser.error(f"not in oftest.yml: {', '.join(sorted(unknown))}")
    problem = oftest_trial.missing() or (
        "it makes network namespaces: run it as root" if os.geteuid() else None
    )
    if problem:
        print(f"oftest: {problem}", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="oftest-") as folder:
        differing = list(differences(asked.tests, asked.mode, build(), Path(folder), at_once=asked.at_once))
    for line in differing:
        print(line)
    print(f"oftest: {len(differing)} differ from tests/clients/oftest.yml")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
