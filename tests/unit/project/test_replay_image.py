"""The image of the replay is built from a clone of the commit. No container is started."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from small_source import git

ROOT = Path(__file__).resolve().parents[3]
CONTAINERFILE = re.sub(r"\\\n\s*", "", (ROOT / "setup/container/Containerfile").read_text(encoding="utf-8"))
INSTRUCTIONS = [
    tuple(line.split(maxsplit=1)) for line in CONTAINERFILE.splitlines() if line and not line.startswith("#")
]
DOCKER = """\
#!/bin/sh
echo "$@" >>"$TOLD"
case $1 in
build) for context; do :; done; cp -a "$context" "$TOLD.context" ;;
image) echo 2000000000 ;;
esac
"""
"""A program that keeps what it is told to build."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with set-up, one more commit behind it, a change and a file that are not committed."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "setup", source / "setup")
    git(source.parent, "init", "--quiet", str(source))
    (source / "kept").write_text("first")
    for text in ("first", "second"):
        (source / "kept").write_text(text)
        git(source, "add", "kept", "setup")
        git(source, "commit", "--quiet", "--message", text)
    (source / "kept").write_text("changed")
    (source / "not-committed").touch()
    return source


def build(source: Path, folder: Path, docker: Path | str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "DOCKER": str(docker),
        "BASE": "",
        "TOLD": str(folder / "told"),
        "LOKO_BUILD": str(folder / "build"),
    }
    script = source / "setup/container/image.sh"
    return subprocess.run([script], env=environment, capture_output=True, text=True, check=False)


def test_the_context_is_the_commit_and_can_name_it(checkout: Path, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(DOCKER)
    docker.chmod(0o755)
    done = build(checkout, tmp_path, docker)
    assert done.returncode == 0, done.stderr
    assert "the image has none of the changes that are not committed" in done.stdout
    assert "made: loko-testbed/replay (2000 MB)" in done.stdout
    context = tmp_path / "told.context"
    assert sorted(path.name for path in context.iterdir()) == [".git", "kept", "setup"]
    assert (context / "kept").read_text() == "second"
    assert git(context, "rev-parse", "HEAD") == git(checkout, "rev-parse", "HEAD")
    assert git(context, "remote") == ""
    told = (tmp_path / "told").read_text().splitlines()
    assert [line.split()[0] for line in told] == ["info", "build", "run", "image"]
    assert not list(Path(told[1].split()[-1]).parent.glob("*")), "the context is removed"


def test_without_docker_it_says_so_in_a_line(checkout: Path, tmp_path: Path) -> None:
    for docker, message in (("no-such-program", "is not installed"), ("false", "does not answer")):
        refused = build(checkout, tmp_path, docker)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert message in refused.stderr


def test_the_containerfile_has_known_instructions_and_calls_what_is_there() -> None:
    names = [name for name, _ in INSTRUCTIONS]
    assert names[:2] == ["ARG", "FROM"]
    assert set(names) <= {"ARG", "FROM", "RUN", "COPY", "WORKDIR", "ENV", "VOLUME", "CMD"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    called = {
        target for name, rest in INSTRUCTIONS if name == "RUN" for target in re.findall(r"\bmake (\S+)", rest)
    } - {"&&"}
    assert called == {"setup"}
    assert called <= targets
    [command] = [json.loads(rest) for name, rest in INSTRUCTIONS if name == "CMD"]
    [volume] = [rest for name, rest in INSTRUCTIONS if name == "VOLUME"]
    assert command == ["loko", "evaluate", "--out", volume]
