"""The tools work where a locale is not generated, and where the home cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LANG": "xx_XX.UTF-8"}, {"LC_ALL": "de_DE.ISO-8859-1"}])
def test_ansible_starts_in_any_locale(locale: dict[str, str]) -> None:
    done = run([str(ROOT / "setup/with-tools"), "ansible-playbook", "--version"], without_locale() | locale)
    assert done.returncode == 0, done.stderr
    assert "[core 2" in done.stdout


def test_a_locale_in_utf8_is_kept() -> None:
    kept = without_locale() | {"LC_ALL": "C.utf8"}
    assert run([str(ROOT / "setup/with-tools"), "sh", "-c", 'echo "$LC_ALL"'], kept).stdout == "C.utf8\n"


def test_pictures_are_drawn_without_a_home_and_without_a_word_about_it(tmp_path: Path) -> None:
    nowhere = {"HOME": "/proc", "XDG_CONFIG_HOME": "/proc", "XDG_CACHE_HOME": "/proc"}
    program = Path(sys.executable).with_name("loko")
    done = run(
        [str(program), "evaluate", "table2", "fig3a", "--quick", "--out", str(tmp_path)], os.environ | nowhere
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert (tmp_path / "fig3a.svg").exists()


def without_locale() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")
    }


def run(command: list[str], surroundings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False, timeout=120)
