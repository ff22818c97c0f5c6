"""The command `loko bench analyse`: what captures of others say of a switch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loko.terminal import tell
from loko_testbed.cli.for_programs import JsonOption, print_csv, print_json, refuse_both
from loko_testbed.measure.bench.captures.analysis import COLUMNS, HEADINGS, Analysis, Stamp, analyse, taps_of
from loko_testbed.measure.bench.captures.frame_records import frame_records
from loko_testbed.measure.bench.equations import LinkTiming

FilesArgument = Annotated[
    list[Path], typer.Argument(help="One capture with both taps, or two: the entrance's first.")
]
InOption = Annotated[
    str | None, typer.Option(help="Interface of the entrance, number or name. Default in one file: 0.")
]
OutOption = Annotated[
    str | None, typer.Option(help="Interface of the exit, number or name. Default in one file: 1.")
]
StampsOption = Annotated[Stamp, typer.Option(help="What the stamps mean: a frame's start or its end.")]
SenderOption = Annotated[
    bool, typer.Option("--at-sender", help="The entrance was captured on the sending machine itself.")
]
JumboOption = Annotated[
    bool, typer.Option("--jumbo", help="The links carry frames of more than 1,522 bytes.")
]
RateOption = Annotated[int, typer.Option(min=1_000_000, help="Rate of the links in bit/s.")]
RecordsOption = Annotated[
    Path | None, typer.Option(help="Also write every frame's record to this file, in Parquet.")
]


def analyse_captures(
    files: FilesArgument,
    *,
    in_interface: InOption = None,
    out_interface: OutOption = None,
    stamps: StampsOption = Stamp.START,
    at_sender: SenderOption = False,
    jumbo: JumboOption = False,
    link_rate_bps: RateOption = 100_000_000,
    records: RecordsOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each size of frame.")] = False,
) -> None:
    """Processing times, losses and backlog at the first loss, from captures on both sides of a switch.

    Reads pcap, pcapng and Endace ERF, also compressed with gzip. Frames are recognised by what they carry, so
    their headers may have been rewritten.

    Example: loko bench analyse in.pcap out.pcap --records frames.parquet
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    entrance, way_out = taps_of(files, in_interface=in_interface, out_interface=out_interface)
    with frame_records(records) as tell:
        analysis = analyse(
            entrance,
            way_out,
            LinkTiming(rate_bps=link_rate_bps),
            stamps=stamps,
            at_sender=at_sender,
            jumbo=jumbo,
            tell=tell,
        )
    if as_json:
        print_json(analysis.as_json())
    elif as_csv:
        print_csv(COLUMNS, analysis.sizes())
    else:
        _print(analysis)


def _print(analysis: Analysis) -> None:
    table = Table(*HEADINGS, box=None, padding=(0, 2, 0, 0))
    for row in analysis.rows():
        table.add_row(*row)
    Console().print(table)
    tell(
        f"{analysis.entered} frames entered, {analysis.left} left, {analysis.lost} were lost;"
        f" at the end {analysis.under_way} may have been under way"
    )
    if analysis.unknown or analysis.not_ip:
        tell(f"left out: {analysis.unknown} that left without entering, {analysis.not_ip} without IPv4")
    if analysis.undecided:
        tell(
            f"undecided: {analysis.undecided} frames have the content of one that was lost or under way, so"
            " their times do not count; send frames that are numbered"
        )
    if first := analysis.first_loss:
        tell(
            f"first loss: a frame of {first.frame_bytes} bytes at {first.at_ns} ns,"
            f" when the switch held {first.backlog_frames}"
        )
