"""A damaged capture gives an analysis or a one-line error, never anything else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_bench_captures import BEGIN_NS, WIRE, erf, pcap, pcapng

from loko.document import InputError
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.measure.bench.captures.analysis import analyse, taps_of
from loko_testbed.measure.bench.captures.frame_records import frame_records

PATIENT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PASSAGE_NS = 300_000


def both_taps(count: int, size: int) -> list[tuple[int, int, bytes]]:
    """Return (stamp, interface, bytes) of frames that enter by interface 0 and leave by interface 1."""
    sightings = []
    for number in range(count):
        at = BEGIN_NS + number * 1_000_000
        sightings += [(at, 0, frame(size, number)), (at + PASSAGE_NS, 1, frame(size, number))]
    return sightings


WRITERS = {
    "pcapng": pcapng,
    "pcapng, big endian": lambda frames: pcapng(frames, order=">"),
    "erf": erf,
    "erf with extensions": lambda frames: erf(frames, kind=16, extensions=2),
    "pcap": lambda frames: pcap([(at, data) for at, _, data in frames]),
}
FILES = st.builds(
    lambda writer, count, size, packed: (gzip.compress if packed else bytes)(
        WRITERS[writer](both_taps(count, size))
    ),
    st.sampled_from(sorted(WRITERS)),
    st.integers(0, 4),
    st.sampled_from((64, 306, 1516)),
    st.booleans(),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a capture file with bytes changed, removed, repeated or cut off."""
    data = bytearray(draw(FILES))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(1, 40))
        match draw(st.sampled_from(("change", "leave out", "repeat", "cut"))):
            case "change":
                data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
            case "leave out":
                del data[at : at + length]
            case "repeat":
                data[at:at] = data[at : at + length]
            case _:
                del data[at:]
    return bytes(data)


def outcome(path: Path, **options) -> object:
    """Return the analysis, or the error that the user reads."""
    try:
        return analyse(*taps_of([path]), WIRE, **options)
    except InputError as error:
        return str(error)


def examine(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    analysis = outcome(path)
    if isinstance(analysis, str):
        assert analysis.startswith(f"{path}: ")
        assert "\n" not in analysis
    else:
        json.dumps(analysis.as_json())
        assert (
            analysis.lost + analysis.under_way + sum(times.samples for times in analysis.times)
            == analysis.entered
        )


@PATIENT
@given(damaged())
@example(bytes.fromhex("1f8b088b0800311a026b02ff03000000000000000000"))
def test_a_damaged_capture_is_analysed_or_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    examine(tmp_path / "capture", data)


@PATIENT
@given(
    st.binary(max_size=400), st.sampled_from((b"", pcap([]), pcapng([]), erf([(BEGIN_NS, 0, frame(64, 0))])))
)
@example(b"\x1f\x8b", b"")
def test_any_bytes_behind_any_beginning_are_refused_in_one_line(
    tmp_path: Path, tail: bytes, head: bytes
) -> None:
    examine(tmp_path / "capture", head + tail)


@PATIENT
@given(st.integers(1, 30), st.sampled_from((64, 306, 1516)), st.data())
def test_every_cut_keeps_what_came_before(tmp_path: Path, count: int, size: int, data: st.DataObject) -> None:
    """A cut between records gives the analysis of the shorter capture. A cut within a record is reported."""
    whole = erf(both_taps(count, size))
    record = len(whole) // (2 * count)
    at = data.draw(st.integers(2 * record, len(whole)))
    path = tmp_path / "capture"
    path.write_bytes(whole[:at])
    analysis = outcome(path)
    if at % record:
        assert isinstance(analysis, str)
        assert "the file ends in the middle of" in analysis
    else:
        assert not isinstance(analysis, str)
        assert analysis.entered + analysis.left == at // record


@PATIENT
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_records_hold_every_frame_that_was_decided(tmp_path: Path, passes: list[bool]) -> None:
    """Every frame, lost or not, gets one row, in the order in which the frames entered."""
    passes = [*passes, True]  # once the last frame has left, all before it are decided
    sightings = [
        (at, tap, data)
        for number, passed in enumerate(passes)
        for at, tap, data in both_taps(len(passes), 64)[2 * number : 2 * number + 2]
        if tap == 0 or passed
    ]
    path, records = tmp_path / "capture", tmp_path / "records.parquet"
    path.write_bytes(erf(sightings))
    with frame_records(records) as tell:
        analysis = analyse(*taps_of([path]), WIRE, tell=tell)
    rows = pq.read_table(records)
    assert rows["sequence"].to_pylist() == list(range(len(passes)))
    assert [left is not None for left in rows["received_ns"].to_pylist()] == passes
    assert analysis.lost == passes.count(False)
    assert set(rows["size"].to_pylist()) == {64}
    assert rows["sent_ns"][0].as_py() == 0


def test_records_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(erf(both_taps(2, 64)))
    with (
        pytest.raises(InputError, match=r"--records .*nowhere/records.parquet: cannot be written"),
        frame_records(tmp_path / "nowhere" / "records.parquet") as tell,
    ):
        analyse(*taps_of([path]), WIRE, tell=tell)
    assert not (tmp_path / "nowhere").exists()
