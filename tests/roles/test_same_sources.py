"""A bare root file system gets this machine's package sources, with the files that they refer to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("same_sources.sh")

RUNNER = {
    "etc/apt/sources.list.d/ubuntu.sources": """\
        Types: deb
        URIs: mirror+file:/etc/apt/apt-mirrors.txt
        Suites: noble noble-updates
        Components: main universe
        Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
        """,
    "etc/apt/sources.list.d/o.list": "deb [signed-by=/etc/apt/keyrings/other.gpg] https://other any main\n",
    "etc/apt/apt-mirrors.txt": "http://archive.ubuntu.com/ubuntu/\tpriority:1\n",
    "usr/share/keyrings/ubuntu-archive-keyring.gpg": "a key",
    "usr/share/keyrings/unnamed.gpg": "another key",
    "etc/apt/keyrings/other.gpg": "a third key",
}
"""As on GitHub's runners with Ubuntu 24.04."""


@pytest.fixture
def machine(tmp_path):
    here = tmp_path / "here"
    for name, text in RUNNER.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    (tmp_path / "root/etc/apt").mkdir(parents=True)
    (tmp_path / "root/etc/apt/sources.list").write_text("deb http://deb.debian.org/debian bookworm main\n")
    return tmp_path


def test_lists_of_mirrors_and_keys_that_the_sources_name_come_along(machine):
    subprocess.run([SCRIPT, machine / "root", machine / "here"], check=True)
    copied = {
        str(path.relative_to(machine / "root")) for path in (machine / "root").rglob("*") if path.is_file()
    }
    assert copied == set(RUNNER) - {"usr/share/keyrings/unnamed.gpg"}


def test_a_machine_with_one_list_and_no_folder_will_do(machine):
    for name in RUNNER:
        (machine / "here" / name).unlink()
    (machine / "here/etc/apt/sources.list.d").rmdir()
    (machine / "here/etc/apt/sources.list").write_text("deb http://deb.example bookworm main\n")
    subprocess.run([SCRIPT, machine / "root", machine / "here"], check=True)
    assert "deb.example" in (machine / "root/etc/apt/sources.list").read_text()
