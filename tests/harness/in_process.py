"""Programs in the process of the test, which has imported their modules: a start takes up to a second."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable

import pytest

from loko_testbed.cli import main as cli


def loko(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command as its users do, and return its status and what it printed."""
    return in_process(cli.main, "loko", *words)


def in_process(main: Callable[[], object], *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program that ends by `SystemExit`, and return its status and what it printed."""
    command, out, err = list(map(str, words)), io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), out.getvalue(), err.getvalue())
