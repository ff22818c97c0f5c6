"""A pytest plugin that repeats a failed live test only if the machine stalled in the meantime.

The emulator and its tests already tolerate the effects of a short stall on single packets. The effects of a
long stall on a lab, such as a session timeout or a program that is not ready, cannot be excused packet by
packet. So if a real-time test fails and `host_watch` saw that the machine withheld processor time from it,
the test is repeated from scratch once the machine is quiet. Without a stall it fails at once, and after
`TRIES` attempts it fails in any case. There is one exception: if the machine stopped a core for `LONG_GAP_NS`
during every attempt, the result is *undecided*. A run fails if more than one test in `UNDECIDED_SHARE` is
undecided. The summary names each repeated test and what the machine did, and counts them over all runs.
"""

from __future__ import annotations

import datetime
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
import run_mark
from _pytest.runner import runtestprotocol
from host_watch import GAP_NS, Answer, Window

FOREIGN_CORES = 0.25
"""It counts as a stall if others use this much of a core for half a second: a lab needs the cores for
itself."""
AIM = 500
"""The goal: at most one live test in this many needs a second attempt."""
TRIES = 3
LONG_GAP_NS = 100_000_000
"""A machine that withholds a core for this long cannot run a real-time test."""
UNDECIDED_SHARE = 20
"""At most one live test in this many may be undecided, but one is always allowed."""
_MARKERS = {"live", "namespaces"}
_ANSWER_S = 10.0
_QUIET_S = 3.0
_MOST_WAIT_S = 60.0
_AGAIN = "again"
_UNDECIDED = "undecided"
_STATUS = {_AGAIN: ("R", "yellow"), _UNDECIDED: ("U", "yellow")}
_TRIES = pytest.StashKey[list[Answer | None]]()


class Watch(Protocol):
    """Reports what the machine did."""

    def ask(self) -> Answer | None:
        """Return what happened since the last request; None if the watch itself does not answer in time."""

    def settle(self) -> None:
        """Wait until the machine is quiet, but not for ever."""

    def close(self) -> None:
        """Stop watching."""


def described(answer: Answer | None) -> str:
    """Describe in one line what the machine did."""
    if answer is None:
        return f"the watch of the machine had no answer for {_ANSWER_S:g} s"
    longest, busiest = max(answer.gaps_ns, default=0), _busiest(answer)
    kept = f"kept a core from its threads {len(answer.gaps_ns)} times, {longest / 1e6:.0f} ms at most"
    free = f"kept no core from its threads for {GAP_NS / 1e6:.0f} ms"
    return (
        f"the machine {kept if answer.gaps_ns else free}; other programs used {busiest.cores:.2f} cores"
        f" in the busiest {busiest.duration_ns / 1e9:.1f} s"
    )


def is_stall(answer: Answer | None) -> bool:
    """Return whether the machine may be the reason why a test failed."""
    return answer is None or bool(answer.gaps_ns) or _busiest(answer).cores >= FOREIGN_CORES


def is_long(answer: Answer | None) -> bool:
    """Return whether the machine was unable to run a real-time test."""
    return answer is None or max(answer.gaps_ns, default=0) >= LONG_GAP_NS


def wait_for_quiet(watch: Watch) -> None:
    """Wait until a short period passes without a stall, or for at most `_MOST_WAIT_S`."""
    until_s = time.monotonic() + _MOST_WAIT_S
    while True:
        watch.ask()
        time.sleep(_QUIET_S)
        if not is_stall(watch.ask()) or time.monotonic() > until_s:
            return


def _busiest(answer: Answer) -> Window:
    return max(answer.windows, key=lambda window: window.cores, default=Window(1, 0))


class _Specification:
    @pytest.hookspec(firstresult=True)
    def pytest_stall_watch(self, config: pytest.Config) -> Watch | None:
        """Return the watch to use."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(_Specification)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SecondTries(config), "second tries")


@pytest.hookimpl(trylast=True)
def pytest_stall_watch(config: pytest.Config) -> Watch:
    return HostWatch()


class HostWatch:
    """The process that watches this machine."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("host_watch.py")
        self._process = subprocess.Popen(
            [sys.executable, script, str(os.getpid()), run_mark.outermost()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._unanswered = 0

    def ask(self) -> Answer | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(b"\n")
        stdin.flush()
        self._unanswered += 1
        text = b""
        while self._unanswered:  # includes late answers to earlier requests
            if not select.select([stdout], [], [], _ANSWER_S)[0]:
                return None
            text = stdout.readline()
            assert text, "the watch of the machine has ended"
            self._unanswered -= 1
        return Answer.from_json(text.decode())

    def settle(self) -> None:
        wait_for_quiet(self)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class SecondTries:
    """Runs live tests, repeats them if necessary, and counts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._watch: Watch | None = None
        self._live: set[str] = set()
        self._again: dict[str, dict[str, Any]] = {}
        self._told: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not _MARKERS & {marker.name for marker in item.iter_markers()}:
            return None
        if self._watch is None:
            self._watch = item.ihook.pytest_stall_watch(config=item.config)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        earlier = item.stash.get(_TRIES, [])
        if earlier:
            self._watch.settle()
        self._watch.ask()  # discard what happened before the test
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        answer = self._watch.ask()
        failed = any(report.failed for report in reports)
        tries = [*earlier, answer]
        again = failed and is_stall(answer) and len(tries) < TRIES
        undecided = failed and len(tries) == TRIES and all(map(is_long, tries))
        for report in reports:
            if report.failed:
                report.sections.append(("the machine during the test", described(answer)))
                if again or undecided:
                    report.outcome = _AGAIN if again else _UNDECIDED  # type: ignore[assignment]
            if not again or report.outcome == _AGAIN:  # not the passed phases of a failed attempt
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if again:
            self._begin_anew(item)
            item.stash[_TRIES] = tries
            # Call the hook, so that the timeout and similar limits start again.
            item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        return True

    def _begin_anew(self, item: pytest.Item) -> None:
        """Tear down shared fixtures, because the stall may have broken them."""
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(None), when="teardown"
        )
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            item.ihook.pytest_runtest_logreport(report=report)

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        if report.outcome not in _STATUS:
            return None
        letter, colour = _STATUS[report.outcome]
        return report.outcome, letter, (report.outcome.upper(), {colour: True})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not _MARKERS & report.keywords.keys() or report.skipped:
            return
        if report.outcome == _AGAIN:
            [(_, what)] = report.sections[-1:]
            tried = self._again.setdefault(
                report.nodeid, {"test": report.nodeid, "machine": [], "then": "passed"}
            )
            tried["machine"].append(what)
        elif not report.passed and report.nodeid in self._again:
            self._again[report.nodeid]["then"] = report.outcome
            if report.outcome == _UNDECIDED:
                self._again[report.nodeid]["why"] = report.longreprtext.strip().splitlines()[-1]
        if report.when == "call" or not report.passed:
            self._live.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._watch is not None:
            self._watch.close()
        if not self._live or hasattr(self._config, "workerinput"):
            return
        again = list(self._again.values())
        self._told = [
            f"AGAIN {tried['test']}: {'; then '.join(tried['machine'])};"
            f" {tried['then']} at try {len(tried['machine']) + 1}"
            for tried in again
        ]
        undecided = [tried for tried in again if tried["then"] == _UNDECIDED]
        self._told += [f"UNDECIDED {tried['test']}: {tried['why']}" for tried in undecided]
        most = max(1, len(self._live) // UNDECIDED_SHARE)
        if len(undecided) > most:
            self._told.append(
                f"{len(undecided)} of {len(self._live)} tests in real time are undecided, more than {most}:"
                " this machine cannot run them"
            )
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._told.append(f"this run: {_rate(len(again), len(self._live))}")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        log = self._config.rootpath / ".setup" / "second-tries.jsonl"
        try:
            runs = _kept(log, {"at": now, "live": len(self._live), "again": again})
        except OSError as error:
            self._told.append(f"earlier runs: not known, for {log} cannot be kept: {error.strerror}")
            return
        tried, live = sum(len(run["again"]) for run in runs), sum(run["live"] for run in runs)
        self._told.append(
            f"all {len(runs)} runs in {log.relative_to(self._config.rootpath)}: {_rate(tried, live)};"
            f" the aim is at most 1 in {AIM}"
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._told:
            terminalreporter.section("second tries of live tests")
            for line in self._told:
                terminalreporter.line(line)


def _rate(again: int, live: int) -> str:
    share = f" (1 in {live / again:.0f})" if again else ""
    return f"{again} of {live} tests in real time tried again{share}"


def _kept(log: Path, run: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Append a run to the log and return all runs. A line truncated by a full disk is skipped."""
    log.parent.mkdir(exist_ok=True)
    with log.open("a+", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
        file.flush()
        file.seek(0)
        runs = []
        for line in file:
            try:
                runs.append(json.loads(line))
            except ValueError:
                continue
    return runs
