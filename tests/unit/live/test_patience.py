"""Time limits of the live lab on a slow machine."""

from __future__ import annotations

import sys

import pytest

from loko_testbed.instruments.timeouts import scaled_timeout
from loko_testbed.live.daemon import Daemon
from loko_testbed.simulation.runner import RunError


def test_a_limit_is_multiplied_by_what_the_environment_says(monkeypatch):
    monkeypatch.delenv("LOKO_PATIENCE", raising=False)
    assert scaled_timeout(30) == 30
    monkeypatch.setenv("LOKO_PATIENCE", "20")
    assert scaled_timeout(30) == 600
    monkeypatch.setenv("LOKO_PATIENCE", "0.2")
    assert scaled_timeout(30) == 6


@pytest.mark.parametrize("text", ["0.05", "soon", "nan", "inf", "-3"])
def test_what_is_no_factor_is_refused_in_one_line(text, monkeypatch):
    monkeypatch.setenv("LOKO_PATIENCE", text)
    with pytest.raises(RunError, match=f"LOKO_PATIENCE={text}: give a number from 0.1 to 1000"):
        scaled_timeout(30)


def test_a_program_that_is_late_is_told_with_the_limit_that_held(monkeypatch, tmp_path):
    monkeypatch.setenv("LOKO_PATIENCE", "3")
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    daemon = Daemon("the program", command, log=tmp_path / "log", ready=tmp_path / "ready")
    try:
        with pytest.raises(RunError, match=r"the program is not ready after 0\.3 s"):
            daemon.wait_ready(0.1)
    finally:
        daemon.end()
