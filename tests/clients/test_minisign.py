"""The program minisign verifies our signatures, and we verify those that it makes with an encrypted key."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from programs import INSTALLED

from loko_testbed.reproduce.bundle.minisign import PublicKey, SecretKey

PASSWORD = "correct horse"


@pytest.fixture
def minisign():
    path = Path(shutil.which("minisign") or INSTALLED / "minisign/usr/bin/minisign")
    if not path.exists():
        pytest.skip(f"{path} is not installed: run 'make clients' (set-up says why if it cannot be had here)")

    def run(folder: Path, *words: str) -> str:
        told = f"{PASSWORD}\n{PASSWORD}\n"
        done = subprocess.run(
            [path, *words], cwd=folder, input=told, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    return run


def test_minisign_and_we_verify_each_others_signatures(minisign, tmp_path) -> None:
    archive = tmp_path / "archive.zip"
    archive.write_bytes(b"archive of results\n" * 1000)
    minisign(tmp_path, "-G", "-p", "minisign.pub", "-s", "minisign.key")
    public = PublicKey.read(str(tmp_path / "minisign.pub"))
    minisign(tmp_path, "-S", "-s", "minisign.key", "-m", "archive.zip", "-t", "results of Loko")
    assert public.trusted_comment(archive) == "results of Loko"
    SecretKey.read(tmp_path / "minisign.key", lambda: PASSWORD).sign(archive, "file:archive.zip\tcommit:1a2b")
    said = minisign(tmp_path, "-V", "-p", "minisign.pub", "-m", "archive.zip")
    assert "Signature and comment signature verified" in said
    assert "Trusted comment: file:archive.zip\tcommit:1a2b" in said


def test_we_verify_the_older_form_of_signatures(minisign, tmp_path) -> None:
    """By a key without a password: each use of a password takes seconds of scrypt."""
    archive = tmp_path / "archive.zip"
    archive.write_bytes(b"archive of results\n" * 1000)
    minisign(tmp_path, "-G", "-W", "-p", "minisign.pub", "-s", "minisign.key")
    minisign(tmp_path, "-S", "-l", "-s", "minisign.key", "-m", "archive.zip", "-t", "results of Loko")
    assert PublicKey.read(str(tmp_path / "minisign.pub")).trusted_comment(archive) == "results of Loko"
