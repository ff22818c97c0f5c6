"""Signatures of files in the format of the program minisign: https://jedisct1.github.io/minisign/.

A signature is Ed25519 (RFC 8032) over the file's BLAKE2b checksum (``ED``), or in the older form over the
file itself (``Ed``). A second one covers the first together with a comment, which is therefore trusted too.
Each file of the format is a comment that nobody vouches for, and a line of base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from loko.document import InputError
from loko_testbed.tasks.files import write_atomically

SUFFIX: Final = ".minisig"
"""Suffix of the name of a file's signature."""
_UNTRUSTED: Final = "untrusted comment: "
_TRUSTED: Final = "trusted comment: "
_OF_FILE: Final = b"Ed"
_OF_CHECKSUM: Final = b"ED"
"""Kinds of signatures. Keys are of the kind `_OF_FILE`."""
_NOT_ENCRYPTED: Final = b"\0\0"
_SCRYPT: Final = b"Sc"
_BLAKE2B: Final = b"B2"
_ID_BYTES: Final = 8
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_CHECKSUM_BYTES: Final = 32
_SALT_BYTES: Final = 32
_LARGEST_BYTES: Final = 1 << 16
"""Of a file of the format; the program's own limits for both comments are below."""
_BLOCK: Final = 8
"""The r of scrypt."""
_BLOCK_BYTES: Final = 128 * _BLOCK
_LEAST_OPERATIONS: Final = 1 << 15
_MOST_MEMORY_BYTES: Final = (1 << 31) - 1
_PRINTED_ID: Final = "{:016X}"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The key by which a signature is verified."""

    id: bytes
    key: Ed25519PublicKey

    @classmethod
    def read(cls, text_or_path: str) -> Self:
        """Read a key from its file, or from its line of base64. Raises `InputError`."""
        size = len(_OF_FILE) + _ID_BYTES + _KEY_BYTES
        packed = _decoded(text_or_path, size)
        if packed is None:
            with suppress(InputError):
                packed = _decoded(_lines(Path(text_or_path))[1], size)
        if packed is None or not packed.startswith(_OF_FILE):
            raise InputError(
                f"--key {text_or_path}: is neither a public key of minisign, nor a file with one;"
                " 'minisign -G' makes one"
            )
        identifier, key = packed[2:10], packed[10:]
        return cls(identifier, Ed25519PublicKey.from_public_bytes(key))

    @property
    def name(self) -> str:
        """The key's ID as minisign prints it."""
        return _name(self.id)

    def trusted_comment(self, path: Path) -> str:
        """Verify the signature beside a file, and return the comment that it covers. Raises `InputError`."""
        signed = path.with_name(f"{path.name}{SUFFIX}")
        if not signed.is_file():
            raise InputError(
                f"{signed}: no such file, so the archive is not signed; fetch it, or leave --key out"
            )
        _, packed_line, comment, global_line = (*_lines(signed), "", "")[:4]
        packed = _decoded(packed_line, 2 + _ID_BYTES + _SIGNATURE_BYTES)
        whole = _decoded(global_line, _SIGNATURE_BYTES)
        if packed is None or whole is None or not comment.startswith(_TRUSTED):
            raise InputError(f"{signed}: is no signature of minisign; fetch it again")
        kind, identifier, signature = packed[:2], packed[2:10], packed[10:]
        if identifier != self.id:
            raise InputError(
                f"{signed}: is of key {_name(identifier)}, not of {self.name}; give that one's --key"
            )
        trusted = comment.removeprefix(_TRUSTED)
        try:
            self.key.verify(signature, _signed_bytes(path, kind))
            self.key.verify(whole, signature + trusted.encode())
        except InvalidSignature:
            raise InputError(
                f"{path}: refused: key {self.name} has not signed this file with this comment; fetch both"
                " again from whom you trust"
            ) from None
        return trusted


@dataclass(frozen=True, slots=True)
class SecretKey:
    """The key by which files are signed."""

    id: bytes
    key: Ed25519PrivateKey

    @classmethod
    def read(cls, path: Path, password: Callable[[], str]) -> Self:
        """Read a key; `password` is called if it is encrypted. Raises `InputError`, one line."""
        kinds, limits = 6, 16
        secret_bytes = _ID_BYTES + 2 * _KEY_BYTES + _CHECKSUM_BYTES
        packed = _decoded(_lines(path)[1], kinds + _SALT_BYTES + limits + secret_bytes)
        if packed is None or packed[:2] != _OF_FILE or packed[4:6] != _BLAKE2B:
            raise InputError(f"{path}: is no secret key of minisign; 'minisign -G' makes one")
        salt, costs, secret = packed[6:38], packed[38:54], packed[54:]
        if packed[2:4] == _SCRYPT:
            stream = _derived(path, password(), salt, costs, len(secret))
            secret = bytes(one ^ other for one, other in zip(secret, stream, strict=True))
            identified, checksum = secret[:-_CHECKSUM_BYTES], secret[-_CHECKSUM_BYTES:]
            if hashlib.blake2b(_OF_FILE + identified, digest_size=_CHECKSUM_BYTES).digest() != checksum:
                raise InputError(f"{path}: this is not the key's password")
        elif packed[2:4] != _NOT_ENCRYPTED:
            raise InputError(f"{path}: is encrypted in a way that is not minisign's")
        identifier, seed, public = secret[:8], secret[8:40], secret[40:72]
        key = Ed25519PrivateKey.from_private_bytes(seed)
        if key.public_key().public_bytes_raw() != public:
            raise InputError(f"{path}: damaged: its two halves are not of one key")
        return cls(identifier, key)

    def sign(self, path: Path, trusted: str) -> Path:
        """Write a file's signature beside it, with a trusted comment of one line; return its path.

        The same key, file and comment give the same bytes. Raises `InputError` if it cannot be written.
        """
        signature = self.key.sign(_signed_bytes(path, _OF_CHECKSUM))
        whole = self.key.sign(signature + trusted.encode())
        lines = [
            f"{_UNTRUSTED}signature of key {_name(self.id)}",
            base64.b64encode(_OF_CHECKSUM + self.id + signature).decode(),
            f"{_TRUSTED}{trusted}",
            base64.b64encode(whole).decode(),
        ]
        written = path.with_name(f"{path.name}{SUFFIX}")
        write_atomically(written, "".join(f"{line}\n" for line in lines).encode())
        return written


def _name(identifier: bytes) -> str:
    return _PRINTED_ID.format(int.from_bytes(identifier, "little"))


def _signed_bytes(path: Path, kind: bytes) -> bytes:
    """Return what a signature of this kind covers. Raises `InputError` if there is no such kind."""
    try:
        if kind == _OF_FILE:
            return path.read_bytes()
        if kind == _OF_CHECKSUM:
            with path.open("rb") as file:
                return hashlib.file_digest(file, hashlib.blake2b).digest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    raise InputError(f"{path}{SUFFIX}: is a signature of unknown kind {kind!r}")


def _lines(path: Path) -> list[str]:
    """Return the lines of a file of the format, two at least. Raises `InputError`."""
    try:
        with path.open("rb") as file:
            lines = file.read(_LARGEST_BYTES).decode().split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        lines = []
    if len(lines) < 2 or not lines[0].startswith(_UNTRUSTED):
        raise InputError(f"{path}: is no file of minisign, which begins with '{_UNTRUSTED.strip()}'")
    return [line.rstrip("\r") for line in lines]


def _decoded(line: str, size: int) -> bytes | None:
    """Return the bytes of a line of base64; None if it is none, or is not of this size."""
    try:
        data = base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == size else None


def _derived(path: Path, password: str, salt: bytes, costs: bytes, size: int) -> bytes:
    """Return what a secret key is encrypted with: scrypt (RFC 7914) with costs as libsodium understands them.

    `costs` are the most operations and the most bytes of memory, 8 bytes each, the least significant first.
    """
    operations = max(int.from_bytes(costs[:8], "little"), _LEAST_OPERATIONS)
    memory = int.from_bytes(costs[8:], "little")
    blocks = operations // (4 * _BLOCK) if operations < memory // 32 else memory // _BLOCK_BYTES
    rounds = 1 << max(blocks.bit_length() - 1, 1)
    parallel = 1 if operations < memory // 32 else max(operations // 4 // rounds // _BLOCK, 1)
    needed = _BLOCK_BYTES * (rounds + parallel + 2)
    if needed > _MOST_MEMORY_BYTES:
        raise InputError(f"{path}: its password needs {needed >> 20} MiB, more than this program uses")
    return hashlib.scrypt(
        password.encode(), salt=salt, n=rounds, r=_BLOCK, p=parallel, maxmem=_MOST_MEMORY_BYTES, dklen=size
    )
