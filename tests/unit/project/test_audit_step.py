"""`make audit` fails if anything is found, and says in one line what it could not look at."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = (
    "requirements.lock",
    *(f"setup/requirements-{name}.lock" for name in ("service", "bundle", "uv", "audit")),
)
NOT_FOUND = "Temporary failure in name resolution"
STAND_INS = {
    "rustc": "echo 'rustc 1.90.0 (of a test)'",
    "cargo": f"""
        [ ! -e "$WORK/no-registry" ] || {{ echo "{NOT_FOUND}"; exit 1; }}
        mkdir -p "${{@: -1}}/bin" && cp "$WORK/programs/cargo-deny" "${{@: -1}}/bin"
    """,
    "uv": """
        case $1 in
        --version) echo "uv 0.9.0" ;;
        venv) mkdir -p "${@: -1}/bin" && cp "$WORK/programs/pip-audit" "${@: -1}/bin" ;;
        esac
    """,
    "cargo-deny": f"""
        echo "cargo-deny $*" >>"$WORK/calls"
        case " $* " in
        *" fetch "*) [ ! -e "$WORK/no-advisories" ] || {{ echo "{NOT_FOUND}"; exit 1; }} ;;
        *" licenses "*) [ ! -e "$WORK/licence" ] || {{ echo "error: a licence"; exit 4; }} ;;
        *" advisories "*) [ ! -e "$WORK/advisory" ] || {{ echo "error: an advisory"; exit 1; }} ;;
        esac
    """,
    "pip-audit": f"""
        [ "$1" != --version ] || exit 0
        echo "pip-audit $*" >>"$WORK/calls"
        [ ! -e "$WORK/no-advisories" ] || {{ echo "{NOT_FOUND}"; exit 1; }}
        if [ -e "$WORK/vulnerable" ] && [[ "$*" = *uv.lock ]]; then echo "uv 0.1 PYSEC-1"; exit 1; fi
        echo "No known vulnerabilities found"
    """,
}


class Audit:
    """The step in a folder of its own, with stand-ins for all programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "setup", folder / "setup")
        (folder / "requirements.lock").touch()
        (folder / "programs").mkdir()
        for name, body in STAND_INS.items():
            self._program(folder / "programs" / name, body)
        self._program(folder / ".venv/bin/python", "echo Python 3.11.0")

    @staticmethod
    def _program(path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run(self, *, ci: bool = False) -> tuple[int, list[str]]:
        outside = {name: value for name, value in os.environ.items() if name not in {"CI", "LOKO_BUILD"}}
        path = f"{self.folder / 'programs'}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.folder / "setup/audit.sh"],
            env={**outside, "PATH": path, "WORK": str(self.folder), "LOKO_SETUP_PAUSE_S": "0"}
            | ({"CI": "true"} if ci else {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit(tmp_path)


def test_all_is_looked_at(audit: Audit) -> None:
    status, lines = audit.run(ci=True)
    assert (status, lines[-len(LOCKS) :]) == (
        0,
        [f"setup: {lock}: No known vulnerabilities found" for lock in LOCKS],
    )
    checks = [call for call in audit.calls() if call.startswith("cargo-deny") and " check " in call]
    assert [call.rsplit("graph ", 1)[1] for call in checks] == [
        "bans licenses sources",
        "--disable-fetch advisories",
    ]
    assert all("--deny warnings" in call for call in checks)
    looked = [call for call in audit.calls() if " -r " in call]
    assert all("--strict" in call for call in looked)
    assert len(audit.run()[1]) == len(LOCKS), "nothing is installed twice"


def test_every_lock_of_ours_is_among_them() -> None:
    old_on_purpose = {"setup/requirements-ansible.lock"}
    kept = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.lock"), *ROOT.glob("setup/*.lock")]}
    assert kept - old_on_purpose == set(LOCKS)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("licence", "error: a licence"),
        ("advisory", "error: an advisory"),
        ("vulnerable", "uv 0.1 PYSEC-1"),
    ],
)
def test_whatever_is_found_is_an_error(audit: Audit, found: str, told: str) -> None:
    (audit.folder / found).touch()
    status, lines = audit.run()
    assert status == 1
    assert told in lines
    assert f"setup: {LOCKS[-1]}: No known vulnerabilities found" in lines, "the rest is looked at, too"


def test_without_advisories_two_lines_say_so(audit: Audit) -> None:
    audit.run()
    (audit.folder / "no-advisories").touch()
    status, lines = audit.run()
    assert status == 0
    assert [line.partition(" left out: no network")[0] for line in lines] == [
        "setup: note: the advisories of crates are",
        "setup: note: Python's packages are",
    ]
    assert audit.run(ci=True)[0] == 1


def test_what_cannot_be_installed_is_left_out_in_one_line(audit: Audit) -> None:
    (audit.folder / "no-registry").touch()
    status, lines = audit.run()
    assert status == 0
    [left_out] = [line for line in lines if "left out" in line]
    assert left_out.startswith(
        "setup: note: the crates are left out: no network: a registry of packages cannot"
    )
    assert audit.run(ci=True)[0] == 1
