"""The source in an archive, compared with the tree of its commit.

The archive has the commit as git keeps it, and the listing of the commit's tree. The commit's ID is the
checksum of the former, which has the tree's, which follows from the latter, which has each file's. So the ID
alone says what every file must be, and no repository is needed to compare.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from loko.document import InputError
from loko_testbed.reproduce.bundle.archive import Archive
from loko_testbed.tasks.provenance import MARKS, checkout, commit, committed, marks_of, sha256_of

SOURCE: Final = "source"
"""Folder of the source within the archive: all that git tracks, so locks, profiles and labs as well."""
COMMIT: Final = "git/commit"
TREE: Final = "git/tree"
"""The commit as git keeps it, and the listing of its tree (`loko_testbed.tasks.provenance.committed`)."""
_SHA1_DIGITS: Final = 40
_NAMED_DIGITS: Final = 12
"""Digits by which results name a commit."""
_NAME: Final = re.compile(r"[0-9a-f]{12}")
_FILE: Final = re.compile(r"(?P<mode>[0-7]{6}) [a-z]+ (?P<id>[0-9a-f]{40}|[0-9a-f]{64})\t(?P<path>.+)")
_TREE_LINE: Final = re.compile(rb"\Atree ([0-9a-f]+)\n")
_EXECUTABLE: Final = "100755"
_SUBMODULE: Final = "160000"
_FOLDER: Final = "40000"
"""Modes of files, submodules and folders in a tree."""


class TreeFile(NamedTuple):
    """A file of a commit."""

    mode: str
    """In octal, as in ``100644``."""
    id: str
    """Checksum of the file, as git computes it."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit and its files, by path. Its ID follows from them."""

    id: str
    files: Mapping[str, TreeFile]


@dataclass(frozen=True, slots=True)
class SourceComparison:
    """The outcome of the comparison of an archive's source with its commit."""

    commit: str
    """The whole ID of the commit; empty if the commit is not at hand."""
    known_here: bool = False
    """Whether the checkout of this program has the commit too."""
    unlike: tuple[str, ...] = ()
    """Files of the archive that differ from the commit, or that only one of both has; with `SOURCE`."""
    as_here: tuple[str, ...] = ()
    """Those of `unlike` that are the same bytes in the checkout of this program, which is of that commit."""
    refused: str = field(default="", kw_only=True)
    """Why the commit in the archive is not the one that it claims; empty if it is."""

    @property
    def differing(self) -> list[str]:
        """The files of `unlike` for which nothing speaks."""
        return [name for name in self.unlike if name not in self.as_here]


def files_of_commit() -> dict[str, bytes]:
    """Return the files of an archive that say which commit its source is of; empty if git does not know."""
    known = committed(commit()[:_NAMED_DIGITS])
    return {} if known is None else {COMMIT: known[0], TREE: known[1]}


def compare_source(archive: Archive) -> SourceComparison:
    """Compare the source in an archive with the tree of the commit that the archive names."""
    named = archive.manifest.commit
    listed = archive.manifest.files
    here = committed(named[:_NAMED_DIGITS]) if _NAME.match(named) else None
    if COMMIT in listed and TREE in listed:
        packed = archive.read(COMMIT), archive.read(TREE)
    elif here is not None:
        packed = here
    else:
        return SourceComparison("")
    try:
        known = _commit_of(*packed)
    except InputError as error:
        return SourceComparison("", refused=str(error))
    if not known.id.startswith(named[:_NAMED_DIGITS]):
        return SourceComparison(known.id, refused=f"{COMMIT} is {known.id}, not {named}")
    unlike = tuple(_unlike(archive, known))
    return SourceComparison(
        known.id,
        known_here=here is not None and here == packed,
        unlike=unlike,
        as_here=tuple(name for name in unlike if named == commit() and _is_as_here(archive, name)),
    )


def _unlike(archive: Archive, known: Commit) -> Iterator[str]:
    """Yield the files of the source that differ from the commit, or that only one of both has."""
    packed = _source_files(archive)
    expected = {f"{SOURCE}/{path}": file for path, file in known.files.items()}
    for name in sorted(packed | expected.keys()):
        file = expected.get(name)
        if file is None or name not in packed or not _is_like(archive, name, file):
            yield name


def _is_like(archive: Archive, name: str, file: TreeFile) -> bool:
    digest = _object(file.id, "blob", archive.manifest.files[name].size)
    for chunk in archive.chunks(name):
        digest.update(chunk)
    return digest.hexdigest() == file.id and archive.is_executable(name) == (file.mode == _EXECUTABLE)


def _is_as_here(archive: Archive, name: str) -> bool:
    """Return whether a file of the source is as in this program's checkout, or is in neither."""
    path, listed = checkout() / name.removeprefix(f"{SOURCE}/"), archive.manifest.files.get(name)
    if listed is None or not path.is_file():
        return listed is None and not path.exists()
    is_executable = bool(path.stat().st_mode & stat.S_IXUSR)
    return sha256_of(path) == listed.sha256 and is_executable == archive.is_executable(name)


def marks_beside(archive: Archive) -> dict[str, bytes]:
    """Return the files that must be beside the archive's source (`loko_testbed.tasks.provenance.MARKS`)."""
    listed = archive.manifest.files
    sums = {name.removeprefix(f"{SOURCE}/"): listed[name].sha256 for name in _source_files(archive)}
    return {f"{SOURCE}/{name}": data for name, data in marks_of(sums, archive.manifest.commit).items()}


def _source_files(archive: Archive) -> set[str]:
    """Return the files of the source in an archive, without `loko_testbed.tasks.provenance.MARKS`."""
    packed = {name for name in archive.manifest.files if name.startswith(f"{SOURCE}/")}
    return packed - {f"{SOURCE}/{name}" for name in MARKS}


def _commit_of(commit_object: bytes, listing: bytes) -> Commit:
    """Return a commit and its files. Raises `InputError` if the listing is not that of the commit's tree."""
    files: dict[str, TreeFile] = {}
    for line in listing.decode(errors="replace").split("\n")[:-1]:
        match = _FILE.fullmatch(line)
        if match is None or not match["path"].isprintable():
            raise InputError(f"{TREE}: {line[:60]!r} is no line of 'git ls-tree -r'")
        files[match["path"]] = TreeFile(match["mode"], match["id"])
    if _listing(files) != listing:
        raise InputError(f"{TREE} is not as 'git ls-tree -r' prints it")
    tree = _TREE_LINE.match(commit_object)
    if tree is None or _tree_id(files, tree[1].decode()) != tree[1].decode():
        raise InputError(f"{TREE} is not the tree of {COMMIT}")
    digest = _object(tree[1].decode(), "commit", len(commit_object))
    digest.update(commit_object)
    return Commit(str(digest.hexdigest()), files)


def _listing(files: Mapping[str, TreeFile]) -> bytes:
    """Return the listing of a tree with these files, as git prints it."""
    lines = {path.encode(): f"{file.mode} {_kind(file)} {file.id}\t".encode() for path, file in files.items()}
    return b"".join(lines[path] + path + b"\n" for path in sorted(lines))


def _kind(file: TreeFile) -> str:
    return "commit" if file.mode == _SUBMODULE else "blob"


def _tree_id(files: Mapping[str, TreeFile], like: str) -> str:
    """Return git's checksum of a folder with these files and folders below it."""
    entries: dict[str, TreeFile] = {}
    folders: dict[str, dict[str, TreeFile]] = {}
    for path, file in files.items():
        folder, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(folder, {})[rest] = file
        else:
            entries[path] = file
    keyed = [(name, name, file) for name, file in entries.items()]
    keyed += [(f"{name}/", name, TreeFile(_FOLDER, _tree_id(below, like))) for name, below in folders.items()]
    packed = b"".join(
        f"{file.mode} {name}".encode() + b"\0" + bytes.fromhex(file.id)
        for _, name, file in sorted(keyed, key=lambda entry: entry[0].encode())
    )
    digest = _object(like, "tree", len(packed))
    digest.update(packed)
    return str(digest.hexdigest())


def _object(like: str, kind: str, size: int) -> Any:
    """Begin the checksum of an object of git, of the same kind of checksum as an ID."""
    name = "sha1" if len(like) == _SHA1_DIGITS else "sha256"
    return hashlib.new(name, f"{kind} {size}\0".encode(), usedforsecurity=False)
