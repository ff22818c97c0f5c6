"""Mininet's own Python can import the board as a switch, and `loko mininet` finds that Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loko_testbed.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
_AS_MN_DOES = """
import sys
sys.path.append(sys.argv[2])
customs = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), customs, customs)
from loko_testbed.mininet import ZodiacFX
assert customs["switches"] == {"zodiac": ZodiacFX}
files = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
print(*(file for file in files if file.startswith(sys.argv[3])), sep="\\n")
"""


def test_it_needs_only_mininet_and_the_standard_library_of_python_3_8(tmp_path: Path) -> None:
    (tmp_path / "mininet").mkdir()
    (tmp_path / "mininet" / "node.py").write_text("class Switch: pass")
    custom = CliRunner().invoke(app, ["mininet"]).output.strip()
    command = [sys.executable, "-I", "-S", "-c", _AS_MN_DOES, custom, str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = [Path(file) for file in done.stdout.splitlines()]
    assert ROOT / "testbed/loko_testbed/mininet/switch.py" in imported
    for path in (*imported, Path(custom), Path(custom).with_name("run_script.py")):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize(
    ("first", "script", "says"),
    [
        ("", "none.py", "none.py: no such script"),
        (None, "script.py", "the program 'mn' is missing: install it with 'apt-get install mininet'"),
        ("#!/bin/sh", "script.py", "mn: its first line names no Python"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str | None, script: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text("")
    Path("mn").write_text(f"{first}\n")
    found = None if first is None else str(tmp_path / "mn")
    monkeypatch.setattr("loko_testbed.cli.mininet.locate", lambda _: found)
    ended = CliRunner().invoke(app, ["mininet", script])
    assert ended.exit_code == 2
    assert ended.output.count("\n") == 1
    assert says in ended.output


def test_a_script_runs_under_the_python_of_mn_with_its_own_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mn, script, python = tmp_path / "mn", tmp_path / "script.py", tmp_path / "python"
    python.symlink_to(sys.executable)  # a first line cannot name a path with a space
    mn.write_text(f"#!{python} -I\n")
    script.write_text("import sys\nprint(sys.argv[1:], sys.path[0], sys.flags.isolated, sep='|')")
    mn.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    loko = [str(Path(sys.executable).with_name("loko")), "mininet", str(script), "--depth", "2"]
    done = subprocess.run(loko, capture_output=True, text=True, check=True)
    assert done.stdout == f"['--depth', '2']|{tmp_path}|1\n"
