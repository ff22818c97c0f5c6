"""The records of trials, one line of JSON each, from which an interrupted campaign resumes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from loko.document import InputError
from loko_testbed.simulation.worst_case.port_trial import PortTrial
from loko_testbed.simulation.worst_case.trial import Trial


class TrialRecord(BaseModel):
    """The result of a trial."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    number: int
    """Index in the campaign, from 0."""
    seed: int
    scheme: str
    shape: str
    way: str
    switches: int
    entries: int
    sizes: tuple[int, ...]
    flows: int
    control: tuple[str, ...]
    duration_ns: int
    packets: int
    passages: int
    """Sum over all packets of the switches on their paths."""
    lost: int
    broken: int
    """Number of flows whose guarantee was broken."""
    worst: float
    """Largest ratio of delay to guarantee."""
    events: int

    @classmethod
    def of(cls, number: int, trial: Trial) -> Self:
        """Return the record of a trial."""
        case, verdict = trial.drawn.case, trial.verdict
        return cls(
            number=number,
            seed=trial.drawn.seed,
            scheme=case.scheme,
            shape=trial.drawn.shape,
            way=trial.way,
            switches=trial.drawn.switches,
            entries=case.entries,
            sizes=trial.drawn.sizes,
            flows=len(case.admitted),
            control=tuple(sorted(message.value for message in case.control)),
            duration_ns=trial.duration_ns,
            packets=verdict.packets,
            passages=sum(
                flow.sent * len(admitted.hops)
                for flow, admitted in zip(verdict.flows, case.admitted, strict=True)
            ),
            lost=verdict.lost,
            broken=len(verdict.broken),
            worst=verdict.worst,
            events=len(verdict.events),
        )

    @property
    def failed(self) -> bool:
        """Whether a guarantee was broken or a board complained."""
        return bool(self.broken or self.events)


def campaign_seed(seed: int, number: int) -> int:
    """Return the seed of a campaign's trial, which `--replay` takes."""
    text = f"{seed} {number}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


class PortRecord(BaseModel):
    """The result of a trial on switches with queues for each port."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    number: int
    """Index in the campaign, from 0."""
    seed: int
    profile: str
    shape: str
    flows: int
    packets: int
    lost: int
    broken: int
    """Number of flows whose bound was broken."""
    worst: float
    """Largest ratio of delay to bound."""
    events: int

    @classmethod
    def of(cls, number: int, trial: PortTrial) -> Self:
        """Return the record of a trial."""
        verdict = trial.verdict
        return cls(
            number=number,
            seed=trial.seed,
            profile=trial.profile,
            shape=trial.shape,
            flows=trial.flows,
            packets=verdict.packets,
            lost=verdict.lost,
            broken=len(verdict.broken),
            worst=verdict.worst,
            events=len(verdict.events),
        )

    @property
    def failed(self) -> bool:
        """Whether a bound was broken or a switch complained."""
        return bool(self.broken or self.events)


R = TypeVar("R", TrialRecord, PortRecord)


class Journal(Generic[R]):
    """The file with a campaign's records, in the order in which trials ended."""

    def __init__(self, path: Path, head: dict[str, object], kind: type[R]) -> None:
        """Open or create the file. Raises `InputError` if its head differs or a line is no record."""
        self._path = path
        self._kind: type[R] = kind
        self.records: dict[int, R] = {}
        first = json.dumps(head, sort_keys=True)
        whole = 0
        if path.exists():
            data = path.read_bytes()
            # Ignore a last line that was cut off when the process was killed.
            whole = data.rfind(b"\n") + 1
            lines = data[:whole].decode().splitlines()
            if lines and lines[0] != first:
                raise InputError(
                    f"{path}: belongs to another campaign ({lines[0]}); choose another --out, or remove it"
                )
            self._read(lines[1:])
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._file = os.fdopen(descriptor, "r+b")
        self._file.truncate(whole)
        self._file.seek(whole)
        if whole == 0:
            self._append(first)

    def _read(self, lines: Iterable[str]) -> None:
        for place, line in enumerate(lines, start=2):
            try:
                record = self._kind.model_validate_json(line)
            except ValidationError:
                raise InputError(f"{self._path}:{place}: is no record; remove the line") from None
            self.records[record.number] = record

    def add(self, record: R) -> None:
        """Append a record; once this returns, killing the process does not lose it."""
        self.records[record.number] = record
        self._append(record.model_dump_json())

    def _append(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()


def up_to(records: dict[int, R], packets: int) -> list[R] | None:
    """Return the first trials, by number, that together have `packets` packets; None if one is missing.

    The result does not depend on the order in which trials were carried out, or on the number of processes.
    """
    chosen: list[R] = []
    total = 0
    while total < packets:
        record = records.get(len(chosen))
        if record is None:
            return None
        chosen.append(record)
        total += record.packets
    return chosen


def fingerprint(records: Iterable[TrialRecord | PortRecord]) -> str:
    """Return a hash of the records in order, which is equal only for identical results."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(record.model_dump_json().encode() + b"\n")
    return digest.hexdigest()
