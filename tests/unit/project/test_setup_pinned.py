"""Everything that set-up fetches from the Python registry is pinned with hashes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[3] / "setup"
COMMANDS = {
    script.name: re.sub(r"\\\n\s*", " ", script.read_text(encoding="utf-8")).splitlines()
    for script in SETUP.rglob("*.sh")
}


def fetching():
    for name, lines in COMMANDS.items():
        for line in lines:
            if re.search(r"\bpip\b.* (install|download)\b", line) and "--no-deps" not in line:
                yield pytest.param(line.strip(), id=f"{name}: {line.split()[0]}")


def test_there_is_something_to_be_looked_at():
    assert len(list(fetching())) >= 5


@pytest.mark.parametrize("command", list(fetching()))
def test_every_command_that_fetches_checks_hashes_and_builds_nothing_with_what_it_finds(command):
    assert "--require-hashes" in command
    assert re.search(r'-r "?\S+(lock|\$lock)"?', command)
    # Source packages are built by pinned tools: in the environment, from the lists, or not at all.
    build_free = (
        r"--no-build-isolation|--build-constraint|--only-binary|-r \S*requirements-(build|bundle)\.lock"
    )
    assert re.search(build_free, command)


@pytest.mark.parametrize("lock", sorted(SETUP.rglob("*.lock")), ids=lambda path: path.name)
def test_every_requirement_has_a_hash(lock):
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^ *#.*\n?", "", lock.read_text(encoding="utf-8")))
    assert len(entries) > 0
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+ (; .* )?\\\n +--hash=sha256:[0-9a-f]{64}", entry), entry


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",  # pip
        "  cause: Hash mismatch for `setuptools==84.2.1`",  # uv
    ],
)
def test_another_package_than_the_pinned_one_is_told_in_a_line(tmp_path, said):
    (tmp_path / "log").write_text(f"{said}\nmore\n")
    script = f'. "{SETUP}/trouble.sh"; trouble "{tmp_path}/log"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert "another package than the one that is pinned here" in done.stdout
