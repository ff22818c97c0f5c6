"""`loko bundle` and `loko verify`."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from loko.terminal import tell
from loko_testbed.reproduce.bundle.archive import Archive
from loko_testbed.reproduce.bundle.minisign import SUFFIX, PublicKey, SecretKey
from loko_testbed.reproduce.bundle.packing import pack
from loko_testbed.reproduce.bundle.verification import NOT_COVERED, Bundle
from loko_testbed.reproduce.result import FigureResult
from loko_testbed.tasks.progress import ProgressBar
from loko_testbed.tasks.provenance import checkout, sha256_of

DIFFERS: Final = 1
NOT_COMPARED: Final = 3
"""Exit statuses of `verify`: something differs; nothing does, but something could not be compared."""


def bundle(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    *,
    out: Annotated[Path | None, typer.Option(help="The archive. Default: DIR.zip.")] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY", help="Sign the archive with this secret key of minisign, in ARCHIVE.minisig."
        ),
    ] = None,
) -> None:
    """Pack results, report and the source that made them into one archive that others can verify.

    It adds CITATION.cff and a manifest of checksums. The same folder gives the same bytes.

    The password of an encrypted key is asked for, or read from standard input.

    Example: loko bundle results/virtual --out loko-artifact.zip --sign minisign.key
    """
    path = out if out is not None else directory.resolve().with_name(f"{directory.resolve().name}.zip")
    key = None if sign is None else SecretKey.read(sign, _password)
    manifest = pack(directory, path)
    tell(f"written: {path} ({len(manifest.files)} files, commit {manifest.commit})")
    tell(f"SHA-256: {sha256_of(path)}")
    if key is not None:
        comment = f"file:{path.name}\tcommit:{manifest.commit}"
        tell(f"signed: {key.sign(path, comment)}")


def _password() -> str:
    if sys.stdin.isatty():
        return getpass.getpass("password of the key: ")
    return sys.stdin.readline().rstrip("\n")


def verify(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="What 'loko bundle' wrote.")],
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...", help="Figures to replay. Default: the quickest, for about a minute."
        ),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Replay every figure made in virtual time.")
    ] = False,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Replay and draw nothing: compare checksums and source.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="PUB",
            help="Demand a signature in ARCHIVE.minisig by this public key of minisign, a file or the key.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Points computed at a time. Default: one per processor."),
    ] = None,
) -> None:
    """Check an archive: make its files again from what they follow from, and compare the bytes.

    The source must be that of its commit; figures in virtual time are replayed, with those that they depend
    on; claims, pictures and report must follow from the results. The last line says how far it went.

    Status 0 if nothing differs; 1 if something does, with a line for each difference; 2 if the archive is
    damaged, was edited, lacks the signature, or would be written outside its folder; 3 if nothing differs,
    but something could not be compared, such as what another version of the renderer drew.

    Example: loko verify loko-artifact.zip fig17a --key minisign.pub
    """
    _tell_signature(archive, key)
    with tempfile.TemporaryDirectory(prefix="loko-verify-") as folder:
        with Archive.opened(archive) as opened:
            bundle = Bundle(opened, Path(folder))
        tell(f"checksums: {len(bundle.files)} files are as the manifest says, commit {bundle.commit}")
        _tell_source(bundle)
        chosen = [] if checksums else bundle.chosen(figures or [], everything=everything)
        if not checksums:
            with ProgressBar() as progress:
                bundle.make_again(chosen, jobs=jobs or len(os.sched_getaffinity(0)), progress=progress)
        _tell_figures(bundle, chosen, checksums=checksums)
        for difference in bundle.differences:
            tell(f"{'differs' if difference.comparable else 'not comparable'}: {difference.what}")
        if not checksums:
            tell(f"not covered: {NOT_COVERED}")
    differing = sum(difference.comparable for difference in bundle.differences)
    incomparable = len(bundle.differences) - differing
    tell(_last_line(bundle, chosen, differing, incomparable, checksums=checksums))
    if bundle.differences:
        raise typer.Exit(DIFFERS if differing else NOT_COMPARED)


def _tell_signature(archive: Path, key: str | None) -> None:
    """Verify the signature by a key, or say that there is one. Raises `InputError`."""
    if key is not None:
        public = PublicKey.read(key)
        tell(f"signature: by key {public.name}, with the comment {public.trusted_comment(archive)!r}")
    elif archive.with_name(f"{archive.name}{SUFFIX}").is_file():
        tell(f"signature: not checked; --key PUB checks {archive.name}{SUFFIX}")


def _tell_source(bundle: Bundle) -> None:
    source = bundle.source
    if not source.commit or source.differing:
        return
    where = (
        f"which the checkout {checkout()} has"
        if source.known_here
        else "which no checkout here has: ask those whom you trust whether it is theirs"
    )
    names = ", ".join(source.as_here)
    changed = f"; changed since, and so here: {names}" if names else ""
    tell(f"source: is that of commit {source.commit}, {where}{changed}")


def _tell_figures(bundle: Bundle, chosen: Sequence[FigureResult], *, checksums: bool) -> None:
    for result in chosen:
        if result.name not in bundle.unlike_figures:
            tell(f"replayed: {result.name}: the same bytes")
    if bundle.results and not checksums:
        tell(f"made again from the results: claims, pictures and report, {len(bundle.results)} figures")
    because: dict[str, list[str]] = {}
    for left_out in bundle.not_replayed(chosen):
        if left_out.figure in bundle.results:
            because.setdefault(left_out.because, []).append(left_out.figure)
        for figure in left_out.needed_by:
            tell(f"{figure}: depends on {left_out.figure}, which was not replayed: {left_out.because}")
    for reason, names in because.items():
        tell(f"not replayed: {', '.join(names)}: {'--checksums' if checksums else reason}")


def _last_line(
    bundle: Bundle, chosen: Sequence[FigureResult], differing: int, incomparable: int, *, checksums: bool
) -> str:
    """Return what the verification amounts to."""
    if differing:
        return f"not verified: {differing} {'thing differs' if differing == 1 else 'things differ'}"
    so_far = f"{len(chosen)} of {len(bundle.results)} figures were replayed"
    if incomparable:
        return f"verified in part: nothing differs, but {incomparable} could not be compared; {so_far}"
    if checksums:
        return "verified in part: checksums and source alone; nothing was replayed"
    if len(chosen) < len(bundle.results):
        return f"verified in part: nothing differs; {so_far}"
    return f"verified: nothing differs; {so_far}"
