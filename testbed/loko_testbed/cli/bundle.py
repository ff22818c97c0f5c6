"""`loko bundle` and `loko verify`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from loko.terminal import tell
from loko_testbed.reproduce.bundle.archive import Archive
from loko_testbed.reproduce.bundle.packing import pack
from loko_testbed.reproduce.bundle.verification import Bundle
from loko_testbed.tasks.progress import ProgressBar
from loko_testbed.tasks.provenance import sha256_of


def bundle(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    *,
    out: Annotated[Path | None, typer.Option(help="The archive. Default: DIR.zip.")] = None,
) -> None:
    """Pack results, report and the source that made them into one archive that others can verify.

    It adds CITATION.cff and a manifest of checksums. The same folder gives the same bytes.

    Example: loko bundle results/virtual --out loko-artifact.zip
    """
    path = out if out is not None else directory.resolve().with_name(f"{directory.resolve().name}.zip")
    manifest = pack(directory, path)
    tell(f"written: {path} ({len(manifest.files)} files, commit {manifest.commit})")
    tell(f"SHA-256: {sha256_of(path)}")


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
    checksums: Annotated[bool, typer.Option("--checksums", help="Replay nothing.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Points computed at a time. Default: one per processor."),
    ] = None,
) -> None:
    """Check an archive: every checksum, then a replay of figures in virtual time, compared byte by byte.

    Status 1 if a result differs, with one line for each difference; 2 if the archive is damaged or was
    edited, or would be written outside its folder.

    Example: loko verify loko-artifact.zip fig17a
    """
    with tempfile.TemporaryDirectory(prefix="loko-verify-") as folder:
        with Archive.opened(archive) as opened:
            bundle = Bundle(opened, Path(folder))
        tell(f"checksums: {len(bundle)} files are as the manifest says, commit {bundle.commit}")
        left_out = [result.name for result in bundle.results.values() if result.mode != "virtual"]
        if left_out:
            tell(f"not replayed, since real time is never the same twice: {', '.join(left_out)}")
        if checksums:
            tell("nothing was replayed (--checksums)")
            return
        chosen = bundle.chosen(figures or [], everything=everything)
        with ProgressBar() as progress:
            bundle.replay(chosen, jobs=jobs or len(os.sched_getaffinity(0)), progress=progress)
        unlike = False
        for figure in chosen:
            lines = list(bundle.differences(figure))
            unlike = unlike or bool(lines)
            for line in lines or [f"{figure.name}: the same bytes"]:
                tell(f"differs: {line}" if lines else f"replayed: {line}")
        if not chosen:
            tell("nothing was replayed: the archive has no results of virtual time")
    if unlike:
        raise typer.Exit(1)
