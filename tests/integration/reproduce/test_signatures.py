"""Signatures of archives in minisign's format: ours, and those that the program itself made."""

from __future__ import annotations

import base64
import hashlib
import sys
from io import StringIO
from pathlib import Path

import pytest
from in_process import loko

from loko.document import InputError
from loko_testbed.cli import bundle as cli
from loko_testbed.reproduce.bundle.archive import Manifest
from loko_testbed.reproduce.bundle.minisign import PublicKey, SecretKey
from loko_testbed.tasks import provenance

ARCHIVE = b"archive of results\n"
PUBLIC = "RWQwezGJ7HH1xU25ye9Zk1X0x0Rhwu1MEBFagkJRhno3EiYDdEnO1ky9"
SECRET = """\
untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMHsxiexx9cVUIgoMwUc9tqamQYy8lHG4SBjHxIwm\
nxDMj6A/AAZeoE25ye9Zk1X0x0Rhwu1MEBFagkJRhno3EiYDdEnO1ky9AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
"""
SIGNATURE = """\
untrusted comment: signature from minisign secret key
RUQwezGJ7HH1xcAUX3o5OA8CiSTn2wqWTy63mClTE0e6Wj5mw265pKakxnTzZieeH1Ew7QyshB+30/u1mBdniHsgVgXx0sKdEgc=
trusted comment: timestamp:1796015318\tfile:archive.zip\thashed
7RNyK+ySUfSLNkFL/SD3YAHv1HvHkl4FcfrHlGynco6tJYvqJK+45bs0LOMgL9uRoB7h5Yvv8RIoY/Zu8fCfCA==
"""
OF_THE_FILE_ITSELF = """\
untrusted comment: signature from minisign secret key
RWQwezGJ7HH1xS0B0oYlSNwHOgFwisAxmrMyqYGPEhRij36nt0dZ4AhzgiFtxUQnjqg/0pb6BKbOC+O0WzmFYVFXUxIGU4Xe0Qs=
trusted comment: results of Loko
uG8bBVhT10KhY97WnJsAIiNdFIYo7O+DObf1HhuMrb07RL9Gnw3sanfpYk7EZCaSLI54w+qlAep7c7akDCx6Cw==
"""
"""Keys and signatures of `ARCHIVE` by minisign 0.11: `-G -W`, `-S`, `-S -l`."""
OTHERS = "RWRX4nFwpe40zKbh5QDxH17PXgq0YnoAP+gCW4NxkxP2mAOvCJfwyB8D"


@pytest.fixture
def signed(tmp_path) -> Path:
    """An archive with a signature beside it."""
    archive = tmp_path / "archive.zip"
    archive.write_bytes(ARCHIVE)
    archive.with_name("archive.zip.minisig").write_text(SIGNATURE)
    return archive


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "minisign.key"
    path.write_text(SECRET)
    return path


def never() -> str:
    raise AssertionError("the key is not encrypted")


def encrypted(text: str, password: str) -> str:
    """Encrypt a secret key as minisign does, at the least of its costs."""
    packed = base64.b64decode(text.splitlines()[1])
    salt, identified = bytes(range(32)), packed[54:126]
    costs = (1 << 19).to_bytes(8, "little") + (1 << 24).to_bytes(8, "little")
    checked = identified + hashlib.blake2b(b"Ed" + identified, digest_size=32).digest()
    stream = hashlib.scrypt(password.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=104, maxmem=1 << 26)
    hidden = bytes(one ^ other for one, other in zip(checked, stream, strict=True))
    line = base64.b64encode(b"EdScB2" + salt + costs + hidden).decode()
    return f"{text.splitlines()[0]}\n{line}\n"


@pytest.mark.parametrize(
    ("signature", "comment"),
    [
        (SIGNATURE, "timestamp:1796015318\tfile:archive.zip\thashed"),
        (OF_THE_FILE_ITSELF, "results of Loko"),
        (SIGNATURE.replace("\n", "\r\n"), "timestamp:1796015318\tfile:archive.zip\thashed"),
    ],
)
def test_signatures_of_the_program_are_verified(signed, tmp_path, signature, comment) -> None:
    signed.with_name("archive.zip.minisig").write_text(signature, newline="")
    (tmp_path / "minisign.pub").write_text(f"untrusted comment: minisign public key\n{PUBLIC}\n")
    assert PublicKey.read(str(tmp_path / "minisign.pub")).name == "C5F571EC89317B30"
    for key in (PUBLIC, str(tmp_path / "minisign.pub")):
        assert PublicKey.read(key).trusted_comment(signed) == comment


def test_the_same_signature_as_the_programs_is_made(signed, secret) -> None:
    written = SecretKey.read(secret, never).sign(signed, "timestamp:1796015318\tfile:archive.zip\thashed")
    assert written == signed.with_name("archive.zip.minisig")
    assert written.read_text().splitlines()[1:] == SIGNATURE.splitlines()[1:]


def test_an_encrypted_key_signs_with_its_password_alone(signed, secret) -> None:
    secret.write_text(encrypted(SECRET, "correct horse"))
    SecretKey.read(secret, lambda: "correct horse").sign(signed, "mine")
    assert PublicKey.read(PUBLIC).trusted_comment(signed) == "mine"
    with pytest.raises(InputError, match="this is not the key's password"):
        SecretKey.read(secret, lambda: "wrong horse")


def test_any_change_to_archive_or_signature_is_refused(signed) -> None:
    key, beside = PublicKey.read(PUBLIC), signed.with_name("archive.zip.minisig")
    signed.write_bytes(ARCHIVE + b"x")
    with pytest.raises(InputError, match=r"refused: key C5F571EC89317B30 has not signed this file"):
        key.trusted_comment(signed)
    signed.write_bytes(ARCHIVE)
    lines = SIGNATURE.splitlines()
    for number in (1, 2, 3):
        for place in range(0, len(lines[number]), 7):
            letter = "A" if lines[number][place] != "A" else "B"
            forged = lines[number][:place] + letter + lines[number][place + 1 :]
            beside.write_text("\n".join([*lines[:number], forged, *lines[number + 1 :], ""]))
            with pytest.raises(InputError) as refused:
                key.trusted_comment(signed)
            assert "\n" not in str(refused.value)
    for text in ("", SIGNATURE[:80], "\n".join(lines[:2]), "\0" * 100, SIGNATURE.replace("trusted", "other")):
        beside.write_text(text)
        with pytest.raises(InputError):
            key.trusted_comment(signed)
    beside.unlink()
    with pytest.raises(InputError, match="no such file, so the archive is not signed"):
        key.trusted_comment(signed)


def test_the_signature_of_another_key_is_refused(signed) -> None:
    with pytest.raises(InputError, match="is of key C5F571EC89317B30, not of CC34EEA57071E257"):
        PublicKey.read(OTHERS).trusted_comment(signed)


@pytest.mark.parametrize("text", ["", "nonsense", PUBLIC[:-4], "/nowhere.pub", 9999 * "A"])
def test_what_is_no_public_key_is_told(text) -> None:
    with pytest.raises(InputError, match="is neither a public key of minisign, nor a file with one"):
        PublicKey.read(text)


def test_what_is_no_secret_key_is_told(tmp_path) -> None:
    packed = bytearray(base64.b64decode(SECRET.splitlines()[1]))
    packed[70] ^= 1
    damaged = base64.b64encode(packed).decode()
    costly = base64.b64encode(b"EdScB2" + b"\xff" * 152).decode()
    for text, reason in (
        ("nothing of the kind", "is no file of minisign"),
        (f"untrusted comment: x\n{PUBLIC}\n", "is no secret key of minisign"),
        (f"untrusted comment: x\n{damaged}\n", "its two halves are not of one key"),
        (f"untrusted comment: x\n{costly}\n", "more than this program uses"),
    ):
        (tmp_path / "a.key").write_text(text)
        with pytest.raises(InputError, match=reason):
            SecretKey.read(tmp_path / "a.key", lambda: "")


def test_bundle_signs_and_verify_demands_it(signed, secret, monkeypatch) -> None:
    def pack(_directory: Path, path: Path):
        path.write_bytes(ARCHIVE)
        return Manifest(commit=provenance.commit(), files={})

    monkeypatch.setattr(cli, "pack", pack)
    secret.write_text(encrypted(SECRET, "correct horse"))
    monkeypatch.setattr(sys, "stdin", StringIO("correct horse\n"))
    done = loko("bundle", signed.parent, "--out", signed, "--sign", secret)
    assert done.returncode == 0, done
    assert done.stdout.endswith(f"signed: {signed}.minisig\n")
    comment = PublicKey.read(PUBLIC).trusted_comment(signed)
    assert comment == f"file:archive.zip\tcommit:{provenance.commit()}"
    told = loko("verify", signed, "--key", PUBLIC)
    assert f"signature: by key C5F571EC89317B30, with the comment {comment!r}\n" in told.stdout
    refused = loko("verify", signed, "--key", OTHERS)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is of key C5F571EC89317B30, not of CC34EEA57071E257" in refused.stderr
    unasked = loko("verify", signed)
    assert unasked.stdout.startswith("signature: not checked; --key PUB checks archive.zip.minisig\n")
