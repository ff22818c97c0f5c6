"""Invalid input to `loko bench predictability`: one line with what, where, and how to fix it; status 2."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from predictable_switches import mutated

from loko.document import PROFILES
from loko_testbed.cli.main import main
from loko_testbed.measure.predictability import flow_management
from loko_testbed.measure.predictability.campaign import QUICK, parts, run_campaign
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.executor import Workers
from loko_testbed.tasks.progress import NoProgress
from loko_testbed.tasks.store import TASKS


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs the program and returns the one line that it prints; status must be 2."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def line(device: str, out: Path, *more: str) -> str:
        command = ["loko", "bench", "predictability", "--device", device, "--quick", "--out", str(out), *more]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        [only] = printed.err.splitlines()
        return only

    return line


def test_a_profile_without_a_part(tmp_path: Path, said: Callable[..., str]) -> None:
    text = (PROFILES / "ideal-1g.toml").read_text(encoding="utf-8")
    begin = text.index("[ports]")
    end = text.index("\n[", begin + 1)
    path = tmp_path / "half.toml"
    path.write_text(text[:begin] + text[end:], encoding="utf-8")
    line = said(str(path), tmp_path / "out")
    assert "half.toml" in line
    assert "ports" in line
    assert not (tmp_path / "out").exists()


def test_a_wiring_that_cannot_be_a_shoelace(tmp_path: Path, said: Callable[..., str]) -> None:
    line = said(mutated(tmp_path, ports=7), tmp_path / "out")
    assert "7 ports cannot be a shoelace" in line
    assert "give an even number" in line


def test_a_switch_that_stops_answering_half_way_keeps_finished_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers_no_more(self: flow_management.Controlled, *_: object, **__: object) -> list[bytes]:
        return []

    monkeypatch.setattr(flow_management.Controlled, "_messages", answers_no_more)
    every = parts(mutated(tmp_path), replace(QUICK, packets=100), 1)
    todo = {name: every[name] for name in ("PT-match-port", "FM-paced")}
    out = tmp_path / "out"
    with pytest.raises(RunError, match="stopped answering after 0 entries or more"):
        run_campaign(todo, out, workers=Workers(), progress=NoProgress())
    assert len(list((out / TASKS / "parts").iterdir())) == 1


def test_several_jobs_for_one_live_switch(tmp_path: Path, said: Callable[..., str]) -> None:
    line = said("linux-bridge", tmp_path / "out", "--jobs", "2")
    assert line.startswith("error: --jobs 2: for virtual time only")
