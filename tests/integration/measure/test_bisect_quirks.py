"""`loko bench controller --bisect-quirks`: a check is run against boards with fewer quirks each time."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import switch_emulator
from in_process import loko
from reserved_port import ReservedPort

from loko_testbed.measure.controllers.check import describe_quirks

ROOT = Path(__file__).resolve().parents[3]
NAMES = switch_emulator.quirk_names()
MAIN = "from loko_testbed.cli.main import main; main()"
WORDS = ("bench", "controller", "--bisect-quirks")


def check(*names: str) -> tuple[str, ...]:
    """Return a check that passes if all of these quirks are absent, or with the specification."""
    tests = " && ".join(f"""case "$LOKO_QUIRKS" in *'"{name}"'*) true;; *) false;; esac""" for name in names)
    return ("sh", "-c", f"""[ "$LOKO_QUIRKS" = '"spec"' ] || {{ {tests}; }}""")


def test_the_quirk_that_breaks_a_check_is_named() -> None:
    ended = loko(*WORDS, "--", *check("long-seconds"))
    assert ended.returncode == 1
    assert ended.stdout.startswith("long-seconds breaks the check: it passes without\n")
    lines = ended.stderr.splitlines()
    assert [line.partition(" (")[0] for line in lines[:3]] == [
        "1: with all quirks: fails",
        "2: without quirks: passes",
        f"3: without {', '.join(NAMES[:11])}: passes",
    ]
    assert len(lines) < len(NAMES) / 2 + 2
    assert "without long-seconds: passes" in ended.stderr


def test_quirks_that_break_it_together_are_named() -> None:
    ended = loko(*WORDS, "--json", "--", *check("long-seconds", "no-reassembly"))
    found = json.loads(ended.stdout)
    assert ended.returncode == 1
    assert (found["alone"], [set(names) for names in found["together"]]) == (
        [],
        [{"no-reassembly", "long-seconds"}],
    )
    assert (found["tried"], found["is_complete"]) == (NAMES, True)
    text = loko(*WORDS, "--", *check("long-seconds", "no-reassembly")).stdout
    assert text.startswith("no-reassembly and long-seconds break the check together")


def test_only_the_quirks_of_a_version_are_tried() -> None:
    ended = loko(*WORDS, "--openflow", "1.3", "--csv", "--", *check("long-seconds"))
    rows = {row["quirk"]: row["breaks"] for row in csv.DictReader(io.StringIO(ended.stdout))}
    assert rows == dict.fromkeys(switch_emulator.quirk_names(4), "") | {"long-seconds": "alone"}


def test_a_check_that_passes_ends_with_status_0() -> None:
    ended = loko(*WORDS, "--", "true")
    assert (ended.returncode, ended.stdout) == (0, "the check passes with all quirks: none breaks it\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            (*WORDS, "--", "false"),
            """the check also fails without quirks, so they are not the cause; to see why it does, run:"""
            """ LOKO_QUIRKS='"spec"' false""",
        ),
        (WORDS, "--bisect-quirks: give your check, as in: --bisect-quirks -- pytest test_mine.py"),
        (
            (*WORDS, "--", "no-such-program"),
            "no-such-program: No such file or directory; give a program to run",
        ),
        (("bench", "controller"), "--connect: say where the controller listens, such as tcp:127.0.0.1:6633"),
        (
            ("bench", "controller", "--", "true"),
            "COMMAND: is only used with --bisect-quirks; leave it out",
        ),
        (
            (*WORDS, "--rounds", "2", "--", "true"),
            "--rounds: is only used without --bisect-quirks; leave it out",
        ),
        (
            (*WORDS, "--boards", "2", "--", "true"),
            "--boards: is only used without --bisect-quirks, or with --connect; leave it out",
        ),
    ],
)
def test_what_cannot_be_bisected_is_one_line(words: tuple[str, ...], line: str) -> None:
    ended = loko(*words)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == f"error: {line}"
    assert ended.stdout == ""


def test_a_check_that_hangs_fails_and_is_ended() -> None:
    hangs = ("sleep", "600.0731")
    script = f"""case "$LOKO_QUIRKS" in *long-seconds*|'"spec"') ;; *) {" ".join(hangs)};; esac"""
    limits = ("--openflow", "1.3", "--check-timeout-s", 1)
    ended = loko(*WORDS, *limits, "--", "sh", "-c", script)
    assert ended.returncode == 1
    assert ended.stdout.startswith("long-seconds breaks the check")
    assert not [it.pid for it in psutil.process_iter(["cmdline"]) if it.info["cmdline"] == list(hangs)]


def test_an_interrupted_search_tells_what_it_knows_and_leaves_nothing(tmp_path: Path) -> None:
    started = tmp_path / "started"
    hangs = f"echo $$ > {started}; sleep 600"
    last = NAMES[-1]
    script = f"""case "$LOKO_QUIRKS" in *'["{last}"]'*) {hangs};; *{last}*|*spec*) ;; *) false;; esac"""
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *WORDS, "--json", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        end_s = time.monotonic() + 60
        while not (started.exists() and started.read_text().strip()):
            assert time.monotonic() < end_s
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["tried"] == NAMES[:-1]
    assert json.loads(out)["is_complete"] is False
    assert "interrupted after 10 runs" in err
    assert not psutil.pid_exists(int(started.read_text()))


CONTROLLER = """
import json, os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    session, _ = server.accept()
    session.sendall(bytes.fromhex("0100000800000001"))
    hello = session.recv(4096)
sys.exit(hello[0] == 4 and hello[3] == 8)  # the newest version, and no list of versions
"""


def test_boards_connect_to_a_controller_while_the_check_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "controller.py"
    program.write_text(CONTROLLER)
    monkeypatch.setattr(switch_emulator, "quirk_names", lambda _: NAMES[:3])
    held = ReservedPort()
    ended = loko(
        *(*WORDS, "--connect", f"tcp:127.0.0.1:{held.number}", "--json"),
        *("--", sys.executable, program, held.number),
    )
    held.release()
    assert json.loads(ended.stdout)["alone"] == ["newest-hello"], ended.stderr


@pytest.mark.parametrize(
    ("quirks", "words"),
    [
        ("firmware", "with all quirks"),
        ("spec", "without quirks"),
        ({"without": ["a"]}, "without a"),
        ({"without": ["a", "b"]}, "with only c"),
    ],
)
def test_progress_says_what_is_tried_in_few_words(quirks, words: str) -> None:
    assert describe_quirks(quirks, ["a", "b", "c"]) == words
