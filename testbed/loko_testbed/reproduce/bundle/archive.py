"""The archive: a zip file with reproducible bytes, of which nothing is trusted when it is read.

It has one folder, `ROOT`, with `MANIFEST.json`, which names every other file with its size and checksum.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loko.document import InputError
from loko_testbed.tasks.files import atomic_replacement

ROOT: Final = "loko-artifact"
MANIFEST: Final = "MANIFEST.json"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every file: the earliest that a zip file can express."""
_PACKED_ALREADY: Final = frozenset({".parquet", ".png"})
_CHUNK_BYTES: Final = 1 << 20
_LARGEST_MANIFEST_BYTES: Final = 64 << 20
_UNIX: Final = 3
_ENCRYPTED: Final = 1
_DAMAGES: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)
"""Exceptions from reading a damaged or unknown zip file; `NotImplementedError` is a `RuntimeError`."""


class _ArchiveModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ManifestFile(_ArchiveModel):
    """A file of the archive, as listed in the manifest."""

    size: int = Field(ge=0)
    """Size in bytes."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(_ArchiveModel):
    """The manifest of an archive: its format, the commit, and its files."""

    format: Literal["loko-artifact-1"] = "loko-artifact-1"
    commit: str
    """Commit of the source, and of every result (`loko_testbed.tasks.provenance.commit`)."""
    files: dict[str, ManifestFile]
    """The files, by path from `ROOT`."""


def write_archive(path: Path, files: Mapping[str, Path | bytes], *, commit: str) -> Manifest:
    """Write the files, by path from `ROOT`, and their manifest. The same files give the same bytes."""
    with atomic_replacement(path) as part, zipfile.ZipFile(part, "w") as archive:
        listed = {name: _write(archive, name, files[name]) for name in sorted(files)}
        manifest = Manifest(commit=commit, files=listed)
        _write(archive, MANIFEST, manifest.model_dump_json(indent=1).encode() + b"\n")
    return manifest


def _write(archive: zipfile.ZipFile, name: str, source: Path | bytes) -> ManifestFile:
    info = zipfile.ZipInfo(f"{ROOT}/{name}", _EPOCH)
    info.create_system = _UNIX
    executable = isinstance(source, Path) and bool(source.stat().st_mode & stat.S_IXUSR)
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    packed = PurePosixPath(name).suffix in _PACKED_ALREADY
    info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
    digest, size = hashlib.sha256(), 0
    with archive.open(info, "w", force_zip64=True) as target:
        for chunk in [source] if isinstance(source, bytes) else _chunks_of(source):
            target.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return ManifestFile(size=size, sha256=digest.hexdigest())


def _chunks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


class Archive:
    """An archive from somebody else. Only `extract` writes anything."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._members = self._safe_members()
        self.manifest = self._read_manifest()

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Self]:
        """Open an archive and check that it holds what its manifest names, and nothing else.

        Does not compare checksums (see `check`). Raises `InputError`, one line.
        """
        if not path.is_file():
            raise InputError(f"{path}: no such file; give an archive that 'loko bundle' wrote")
        try:
            archive = zipfile.ZipFile(path)
        except _DAMAGES as error:
            raise InputError(f"{path}: no archive, or a damaged one ({error}); fetch it again") from None
        with archive:
            yield cls(path, archive)

    def check(self) -> None:
        """Read every file and compare its checksum. Raises `InputError` for the first that differs."""
        for name, listed in self.manifest.files.items():
            digest, size = hashlib.sha256(), 0
            for chunk in self.chunks(name):
                digest.update(chunk)
                size += len(chunk)
            if (size, digest.hexdigest()) != (listed.size, listed.sha256):
                raise self._refusal(f"{name} is not what the manifest says (SHA-256)")

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of one file of the manifest, part by part. Raises `InputError`."""
        with self._reading(name) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk

    def read(self, name: str) -> bytes:
        """Return the content of one file of the manifest. Raises `InputError`."""
        return b"".join(self.chunks(name))

    def is_executable(self, name: str) -> bool:
        """Return whether a file of the manifest is a program."""
        return bool((self._members[name].external_attr >> 16) & stat.S_IXUSR)

    def extract(self, name: str, target: Path) -> None:
        """Write one file of the manifest to a path, and create the folders above it. Raises `InputError`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._reading(name) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy, _CHUNK_BYTES)

    @contextmanager
    def _reading(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._archive.open(self._members[name]) as file:
                yield file
        except _DAMAGES as error:
            raise self._refusal(f"{name} cannot be read ({error})") from None

    def _safe_members(self) -> dict[str, zipfile.ZipInfo]:
        """Return the members by path from `ROOT`: regular files with plain names within `ROOT`, each once."""
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist():
            root, *parts = info.filename.split("/")
            if root != ROOT or not parts or not all(map(_is_plain, parts)):
                raise self._refusal(f"{info.filename!r} does not stay in {ROOT}/")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() or kind not in (0, stat.S_IFREG) or info.flag_bits & _ENCRYPTED:
                raise self._refusal(f"{info.filename!r} is no plain file")
            name = "/".join(parts)
            if name in members:
                raise self._refusal(f"{info.filename!r} is there twice")
            members[name] = info
        return members

    def _read_manifest(self) -> Manifest:
        info = self._members.get(MANIFEST)
        if info is None or info.file_size > _LARGEST_MANIFEST_BYTES:
            raise self._refusal(f"it has no {MANIFEST}, or one of unlikely size")
        with self._reading(MANIFEST) as file:
            text = file.read()
        try:
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._refusal(f"{MANIFEST}: {where}: {first['msg']}") from None
        there = set(self._members) - {MANIFEST}
        for name in sorted(there ^ set(manifest.files)):
            lacks = "is not there" if name in manifest.files else "is in no manifest"
            raise self._refusal(f"{name} {lacks}")
        for name, listed in manifest.files.items():
            if self._members[name].file_size != listed.size:
                raise self._refusal(f"{name} is not as long as the manifest says")
        return manifest

    def _refusal(self, reason: str) -> InputError:
        return InputError(f"{self._path}: refused: {reason}; fetch it again from whom you trust")


def _is_plain(part: str) -> bool:
    """Return whether a part of a path is a plain name in its folder, on every system."""
    return part not in ("", ".", "..") and part.isprintable() and not set(part) & set('\\:*?"<>|')
