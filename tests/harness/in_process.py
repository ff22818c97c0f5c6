"""The program `loko` in the process of the test, which has imported its modules: a start takes a second."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import pytest

from loko_testbed.cli import main as cli


def loko(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command as its users do, and return its status and what it printed."""
    command, out, err = ["loko", *map(str, words)], io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), out.getvalue(), err.getvalue())
