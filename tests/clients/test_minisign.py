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


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "archive.zip"
    path.write_bytes(b"archive of results\n" * 1000)
    return path


def test_minisign_verifies_what_we_sign_by_its_key_with_a_password(minisign, archive, tmp_path) -> None:
    minisign(tmp_path, "-G", "-p", "minisign.pub", "-s", "minisign.key")
    SecretKey.read(tmp_path / "minisign.key", lambda: PASSWORD).sign(archive, "file:archive.zip\tcommit:1a2b")
    said = minisign(tmp_path, "-V", "-p", "minisign.pub", "-m", "archive.zip")
    assert "Signature and comment signature verified" in said
    assert "Trusted comment: file:archive.zip\tcommit:1a2b" in said


def test_we_verify_both_forms_of_its_signatures(minisign, archive, tmp_path) -> None:
    """By a key without a password: each use of a password takes seconds of scrypt."""
    minisign(tmp_path, "-G", "-W", "-p", "minisign.pub", "-s", "minisign.key")
    public = PublicKey.read(str(tmp_path / "minisign.pub"))
    for form in ([], ["-l"]):
        minisign(tmp_path, "-S", *form, "-s", "minisign.key", "-m", "archive.zip", "-t", "results of Loko")
        assert public.trusted_comment(archive) == "results of Loko"
