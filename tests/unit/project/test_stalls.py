"""Live tests are repeated only if the machine stalled, and repetitions are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import stalls
from host_watch import GAP_NS, Answer, ForeignWork, Process, Samples, Window
from stalls import FOREIGN_CORES, LONG_GAP_NS, HostWatch, described, is_stall

pytest_plugins = ["pytester"]

QUIET = Answer((), (Window(1_000_000_000, 10_000_000),))
STALLED = Answer((23_000_000, 12_000_000), QUIET.windows)
STOPPED = Answer((LONG_GAP_NS,), QUIET.windows)
BUSY = Answer((), (Window(1_000_000_000, 0), Window(500_000_000, 400_000_000)))


@pytest.fixture
def live(pytester: pytest.Pytester):
    """Run live tests on a machine that gives these answers in turn, repeating the last one."""
    pytester.makeini(
        "[pytest]\nmarkers = live\n    namespaces\nfilterwarnings = error\n    ignore:Module already imported"
    )

    def run(tests: str, *answers: Answer | None, options: tuple[str, ...] = ()) -> pytest.RunResult:
        lines = [None if answer is None else answer.to_json() for answer in (QUIET, *answers)]
        pytester.makeconftest(f"""
            import pathlib, sys
            sys.path.insert(0, {str(Path(stalls.__file__).parent)!r})
            from host_watch import Answer
            pytest_plugins = ["stalls"]

            class Watch:
                left = {lines!r}
                def ask(self):
                    text = self.left.pop(0) if len(self.left) > 1 else self.left[0]
                    return text and Answer.from_json(text)
                def settle(self):
                    waits = pathlib.Path("waits")
                    waits.write_text(waits.read_text() + "x" if waits.exists() else "x")
                def close(self):
                    print("watch closed")

            def pytest_stall_watch(config):
                return Watch()
        """)
        pytester.makepyfile("import pathlib, pytest, time\n" + tests)
        return pytester.runpytest("-p", "no:randomly", "-p", "no:cacheprovider", *options)

    return run


FAILS_ONCE = """
@pytest.mark.live
def test_it():
    tries = pathlib.Path("tries")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    assert tries.read_text() == "xx"
"""
FAILS = FAILS_ONCE.replace('"xx"', '"never"')


@pytest.mark.parametrize("answer", [STALLED, BUSY, None])
def test_a_test_that_fails_in_a_stall_is_tried_again_and_named(live, pytester, answer) -> None:
    result = live(FAILS_ONCE, answer, QUIET)
    assert result.parseoutcomes() == {"passed": 1, "again": 1}
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            f"AGAIN *::test_it: {described(answer)}; passed at try 2",
            "this run: 1 of 1 tests in real time tried again (1 in 1)",
            "all 1 runs in .setup/second-tries.jsonl: 1 of 1 *; the aim is at most 1 in 500",
        ]
    )
    [run] = map(json.loads, (pytester.path / ".setup/second-tries.jsonl").read_text().splitlines())
    assert (run["live"], [second_try["then"] for second_try in run["again"]]) == (1, ["passed"])


def test_a_test_that_fails_without_a_stall_fails(live, pytester) -> None:
    result = live(FAILS_ONCE, QUIET, STALLED)
    assert result.parseoutcomes() == {"failed": 1}
    assert (pytester.path / "tries").read_text() == "x"
    result.stdout.fnmatch_lines(["*the machine during the test*", described(QUIET), "this run: 0 of 1 *"])


def test_after_three_tries_a_test_fails(live, pytester) -> None:
    result = live(FAILS, STALLED, QUIET, STOPPED, QUIET, STALLED)
    assert result.parseoutcomes() == {"failed": 1, "again": 2}
    assert result.ret == 1
    assert (pytester.path / "tries").read_text() == "xxx"
    assert (pytester.path / "waits").read_text() == "xx", "each later try waits for a quiet machine"
    result.stdout.fnmatch_lines(
        [f"AGAIN *: {described(STALLED)}; then {described(STOPPED)}; failed at try 3"]
    )


def test_a_test_that_fails_without_a_stall_at_a_later_try_fails(live, pytester) -> None:
    result = live(FAILS, STOPPED, QUIET)
    assert result.parseoutcomes() == {"failed": 1, "again": 1}
    assert (pytester.path / "tries").read_text() == "xx"


def test_where_the_machine_stops_at_every_try_a_test_is_undecided(live) -> None:
    result = live(FAILS, STOPPED)
    assert result.parseoutcomes() == {"undecided": 1, "again": 2}
    assert result.ret == 0
    result.stdout.fnmatch_lines(["AGAIN *; undecided at try 3", "UNDECIDED *::test_it: *AssertionError"])


def test_a_machine_that_decides_too_little_fails_the_run(live) -> None:
    result = live(FAILS + FAILS.replace("test_it", "test_other"), STOPPED)
    assert result.parseoutcomes() == {"undecided": 2, "again": 4}
    assert result.ret == 1
    result.stdout.fnmatch_lines(["2 of 2 tests in real time are undecided, more than 1: *"])


class Machine:
    """A watch that gives these answers in turn, repeating the last one, and counts the requests."""

    def __init__(self, *answers: Answer | None) -> None:
        self.answers = list(answers)
        self.asked = 0

    def ask(self) -> Answer | None:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def settle(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_a_quiet_machine_is_waited_for_but_not_for_ever(monkeypatch) -> None:
    now_s = 0.0

    def sleep(duration_s: float) -> None:
        nonlocal now_s
        now_s += duration_s

    monkeypatch.setattr(stalls, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now_s))
    stalls.wait_for_quiet(machine := Machine(STALLED, STALLED, BUSY, BUSY, STALLED, QUIET))
    assert machine.asked == 6
    stalls.wait_for_quiet(Machine(BUSY))
    assert 60 < now_s < 90


def test_a_stall_before_a_test_excuses_nothing(live) -> None:
    tests = "@pytest.mark.live\ndef test_a(): pass\n@pytest.mark.namespaces\ndef test_b(): assert False"
    assert live(tests, QUIET, STALLED, QUIET).parseoutcomes() == {"passed": 1, "failed": 1}


def test_other_tests_have_one_try_and_need_no_watch(live, pytester) -> None:
    result = live(FAILS.replace("@pytest.mark.live", ""), STALLED)
    assert result.parseoutcomes() == {"failed": 1}
    assert "watch closed" not in result.stdout.str()
    assert not (pytester.path / ".setup").exists()


COUNTS = """
def count(mark):
    path = pathlib.Path("made")
    path.write_text((path.read_text() if path.exists() else "") + mark)
    return path.read_text()

pytestmark = pytest.mark.live
"""


def test_a_second_try_makes_anew_what_tests_share(live, pytester) -> None:
    tests = """
@pytest.fixture(scope="module")
def lab():
    yield count("x")
    count("-")

def test_a(lab): assert lab == "x-x"
def test_b(lab): assert lab == "x-x"
"""
    assert live(COUNTS + tests, STALLED).parseoutcomes() == {"passed": 2, "again": 1}
    assert (pytester.path / "made").read_text() == "x-x-"


def test_what_failed_in_being_made_is_made_again(live) -> None:
    tests = """
@pytest.fixture(scope="module")
def lab():
    assert count("x") == "xx"

def test_a(lab): pass
"""
    assert live(COUNTS + tests, STALLED).parseoutcomes() == {"passed": 1, "again": 1}


def test_what_does_not_end_well_is_tried_again(live) -> None:
    tests = """
@pytest.fixture
def lab():
    yield
    assert count("x") == "xx"

def test_a(lab): pass
"""
    assert live(COUNTS + tests, STALLED).parseoutcomes() == {"passed": 1, "again": 1}


def test_each_try_has_its_own_time_limit(live) -> None:
    hangs = "@pytest.mark.live\n@pytest.mark.timeout(0.3)\ndef test_it(): time.sleep(1000)"
    assert live(hangs, STALLED).parseoutcomes() == {"failed": 1, "again": 2}


def test_the_rate_is_kept_over_runs(live, pytester) -> None:
    live(FAILS_ONCE, STALLED)
    with (pytester.path / ".setup/second-tries.jsonl").open("a") as log:
        log.write('{"at": "cut off')
        log.write("\n")
    result = live(FAILS_ONCE.replace('"xx"', '"xxx"'), QUIET)
    result.stdout.fnmatch_lines(["this run: 0 of 1 *", "all 2 runs *: 1 of 2 tests * (1 in 2); *"])


def test_a_log_that_cannot_be_kept_is_said(live, pytester) -> None:
    (pytester.path / ".setup").touch()
    result = live("@pytest.mark.live\ndef test_it(): pass", QUIET)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["earlier runs: not known, for *second-tries.jsonl cannot be kept: *"])


def test_workers_are_counted_together(live, pytester) -> None:
    result = live(FAILS_ONCE, STALLED, options=("--numprocesses", "1"))
    assert result.parseoutcomes() == {"passed": 1, "again": 1}
    result.stdout.fnmatch_lines(["this run: 1 of 1 *"])
    assert len((pytester.path / ".setup/second-tries.jsonl").read_text().splitlines()) == 1


def test_what_a_stall_is() -> None:
    def busy(share: float) -> Answer:
        return Answer((), (Window(10**9, 0), Window(10**9, round(share * 10**9))))

    assert not is_stall(Answer())
    assert is_stall(None)
    assert is_stall(Answer((GAP_NS,), ()))
    assert is_stall(busy(FOREIGN_CORES))
    assert not is_stall(busy(FOREIGN_CORES - 0.01))
    assert described(busy(1.5)).endswith("other programs used 1.50 cores in the busiest 1.0 s")


def test_windows_cover_the_time_since_the_last_question() -> None:
    def at(tenths: int) -> int:
        return tenths * 10**8

    samples = Samples(at(0))
    assert samples.windows() == ()
    for tenths, total in [(10, 7), (20, 7), (21, 9)]:
        samples.add(at(tenths), total)
    assert samples.windows() == (Window(at(11), 2), Window(at(10), 7))
    samples.add(at(22), 10)  # long enough only together with the time before
    assert samples.windows() == (Window(at(12), 3),)
    for tenths, total in [(32, 10), (42, 20)]:
        samples.add(at(tenths), total)
    assert samples.windows() == (Window(at(10), 10), Window(at(10), 0))


def test_work_of_others_and_what_is_stolen_add_up() -> None:
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    work = ForeignWork(lambda pid: pid == 100)
    tests, child, other = Process(100, 1, 5, 50), Process(101, 100, 6, 60), Process(200, 1, 7, 70)
    work.sample([other, tests, child], 1000)
    assert work.total_ns == 0, "what was before does not count"
    orphan = child._replace(parent=1, used_ticks=90)
    work.sample([other._replace(used_ticks=73), tests._replace(used_ticks=80), orphan], 1002)
    assert work.total_ns == 5 * tick_ns
    late, reused = Process(201, 200, 9, 4), Process(101, 1, 10, 6)
    work.sample([other._replace(used_ticks=73), tests, late, reused], 1002)
    assert work.total_ns == 15 * tick_ns


def test_the_watch_sees_a_program_that_is_no_part_of_the_tests() -> None:
    watch = HostWatch()
    hog = (
        "import os, time\n"
        "print(os.getpid(), flush=True)\n"
        "end = time.monotonic() + 200\n"
        "while time.monotonic() < end: pass"
    )
    command = ["setsid", "--fork", sys.executable, "-c", hog]
    try:
        with subprocess.Popen(command, env={}, stdout=subprocess.PIPE, text=True) as starter:
            assert starter.stdout is not None
            pid = int(starter.stdout.readline())
            try:
                while not is_stall(watch.ask()):
                    time.sleep(0.2)
            finally:
                os.kill(pid, 9)
    finally:
        watch.close()


HELD_NS = 50_000_000

needs_real_time = pytest.mark.skipif(
    subprocess.run(["chrt", "--fifo", "1", "true"], capture_output=True, check=False).returncode != 0,
    reason="this user may not schedule in real time",
)


@pytest.mark.namespaces
@needs_real_time
def test_the_watch_sees_that_its_threads_are_not_woken() -> None:
    before = set(psutil.Process().children())
    watch = HostWatch()
    try:
        watch.ask()
        [watcher] = set(psutil.Process().children()) - before
        [of_gaps] = watcher.children()
        of_gaps.suspend()  # makes a gap: now no core wakes its threads
        time.sleep(HELD_NS / 1e9)
        of_gaps.resume()
        time.sleep(HELD_NS / 1e9)
        answer = watch.ask()
    finally:
        watch.close()
    assert answer is not None
    # The machine may withhold a core for longer, and at other times as well.
    assert sum(gap_ns == pytest.approx(HELD_NS, rel=0.5) for gap_ns in answer.gaps_ns) >= len(
        os.sched_getaffinity(0)
    )


@pytest.mark.namespaces
@needs_real_time
def test_a_real_time_thread_of_the_tests_makes_no_gap() -> None:
    """The tests' own load must not excuse a failure: a busy sender keeps all other threads off its core."""
    watch = HostWatch()
    hog = (
        "import os, time\n"
        "os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))\n"
        "begin = time.monotonic_ns()\n"
        "while (held := time.monotonic_ns() - begin) < 20 * HELD_NS: pass\n"
        "print(held)"
    )
    try:
        watch.ask()
        command = [sys.executable, "-c", hog.replace("HELD_NS", str(HELD_NS))]
        held = subprocess.run(command, check=True, capture_output=True, text=True)
        time.sleep(HELD_NS / 1e9)
        answer = watch.ask()
    finally:
        watch.close()
    assert answer is not None
    # The machine may withhold a core in the meantime, but not for that long.
    assert all(gap_ns < int(held.stdout) / 2 for gap_ns in answer.gaps_ns)
