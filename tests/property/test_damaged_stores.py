"""Wherever a store is damaged: what is loaded is right, or one line says that it cannot be loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from stores import full, killed, opened

from loko.document import InputError
from loko.service.salvage import salvage
from loko.service.store_document import StoreDocument

SECTOR = 512
PAGE = 4096


def damaged(data: bytes, random: Random) -> bytes:
    """Return a file with bits flipped, a sector or page lost or misplaced, or the end missing."""
    harmed = bytearray(data)
    match random.randrange(5):
        case 0:
            for _ in range(random.choice([1, 1, 1, 2, 8])):
                harmed[random.randrange(len(harmed))] ^= 1 << random.randrange(8)
        case 1:
            size = random.choice([SECTOR, PAGE])
            at = random.randrange(len(harmed) // size) * size
            harmed[at : at + size] = bytes(size)
        case 2:
            at = random.randrange(len(harmed))
            length = min(random.randrange(1, 40), len(harmed) - at)
            harmed[at : at + length] = random.randbytes(length)
        case 3:
            del harmed[random.randrange(len(harmed)) :]
        case 4:
            here, there = (random.randrange(len(harmed) // SECTOR) * SECTOR for _ in range(2))
            harmed[here : here + SECTOR] = data[there : there + SECTOR]
    return bytes(harmed)


def loaded(path: Path) -> StoreDocument | None:
    """Return what a store holds; None if it is refused, which must take one line."""
    try:
        with opened(path) as store:
            return store.content()
    except InputError as error:
        [line] = error.lines
        assert "\n" not in line
        assert str(path) in line
        return None


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_is_refused_or_right(tmp_path: Path, seed: int) -> None:
    random, path = Random(seed), tmp_path / "flows.sqlite"
    held = full(path)
    whole = path.read_bytes()
    assert len(whole) > 10 * PAGE
    outcomes = {"right": 0, "refused": 0}
    for _ in range(100):
        harmed = damaged(whole, random)
        path.write_bytes(harmed)
        got = loaded(path)
        outcomes["right" if got is not None else "refused"] += 1
        assert got is None or got == held
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        if got is None:
            saved = StoreDocument.model_validate(salvage(harmed).values())
            assert all(flow in held.flows for flow in saved.flows)
            assert all(note in held.notes for note in saved.notes)
            assert saved.residual_backlogs.items() <= held.residual_backlogs.items()
            assert saved.circumstances.items() <= held.circumstances.items()
    assert min(outcomes.values()) > 0, "damage was in use, and in what is not"


@pytest.mark.parametrize("seed", range(2))
def test_one_flipped_bit_costs_one_flow(tmp_path: Path, seed: int) -> None:
    random, path = Random(seed), tmp_path / "flows.sqlite"
    held = full(path, flows=30)
    whole = path.read_bytes()
    for _ in range(50):
        at = whole.index(b'"source"', random.randrange(whole.rindex(b'"source"')))
        harmed = bytearray(whole)
        harmed[at + random.randrange(8)] ^= 1 << random.randrange(8)
        found = salvage(bytes(harmed))
        assert found.damaged_rows == 1
        assert len(found.values()["flows"]) == len(held.flows) - 1


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_log_costs_the_last_transaction_at_most(tmp_path: Path, seed: int) -> None:
    """A transaction at its end may have been written while the power failed: nobody was told of it."""
    random, path = Random(seed), tmp_path / "flows.sqlite"
    contents = killed(path)
    file, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    outcomes = {"whole": 0, "last": 0, "refused": 0}
    for _ in range(60):
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes(file)
        Path(f"{path}-wal").write_bytes(cut_or_damaged(log, random))
        got = loaded(path)
        assert got is None or got in contents[-2:]
        outcomes["refused" if got is None else "whole" if got == contents[-1] else "last"] += 1
    assert outcomes["refused"] > outcomes["last"]


def cut_or_damaged(log: bytes, random: Random) -> bytes:
    """Return a log that is damaged; it is not cut, except within its last transaction."""
    harmed = damaged(log, random)
    return harmed if len(harmed) == len(log) else log[: -random.randrange(1, PAGE)]


def test_a_log_that_is_whole_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    contents = killed(path)
    saved = StoreDocument.model_validate(
        salvage(path.read_bytes(), Path(f"{path}-wal").read_bytes()).values()
    )
    assert saved == contents[-1]
    shutil.copy(path, tmp_path / "alone.sqlite")
    with opened(tmp_path / "alone.sqlite") as store:
        assert store.content() != contents[-1], "a copy of the file alone lacks what is in the log"
    with opened(path) as store:
        assert store.content() == contents[-1]
