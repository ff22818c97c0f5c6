"""The campaign: its parts, what is kept of them, and the verdict over all.

Each part is a task that depends on nothing else. What is done is kept in the campaign's folder, a file a
part, so that a campaign that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.executor import each_done
from evaluation.files import write_atomically
from evaluation.predictability import buffers, priority_queueing, processing_time, throughput
from evaluation.predictability.buffers import Capacity
from evaluation.predictability.marks import Mark, Thresholds, Verdict, thresholds
from evaluation.predictability.processing_time import Times
from evaluation.predictability.subject import Subject, subject_of
from evaluation.predictability.table_iii import OTHER_PORT, VALUES, Dimension, Scenario, varied
from evaluation.predictability.throughput import Throughput
from evaluation.provenance import commit
from loko.device import profile_text
from loko.document import InputError

DIMENSIONS: Final = ("PT", "PQ", "TP", "FM", "BM")
"""In the order of table I."""
_NOT_MEASURED: Final = Verdict(mark=Mark.NOT_JUDGED, reasons=("this campaign does not measure it yet",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is sent."""

    packets: int = 100_000
    """Of each scenario of PT (section II-A.2)."""
    bursts: int = 2_000
    """Of each part of PQ."""
    lace_packets: int = 5_000
    """Of each source of the shoelace: that of the study sends for 5 s."""
    congested_ports: int = buffers.MOST_PORTS
    """Of BM, at most."""
    congested_queues: int = buffers.QUEUES[-1]
    """Of each of these ports, at most."""


QUICK: Final = Size(packets=1_000, bursts=2_000, lace_packets=1_000, congested_ports=2, congested_queues=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One task of a campaign."""

    name: str
    device: str
    size: Size
    seed: int
    scenario: Scenario | None = None
    """Of PT."""
    frame_bytes: int = 0
    """Of TP."""
    congested: tuple[int, int] | None = None
    """Of BM: ports, and queues of each."""


def parts(device: str, size: Size, seed: int) -> list[Part]:
    """All parts. Raises `InputError` if the device cannot be measured."""
    subject = subject_of(device)
    if subject.ports < OTHER_PORT:
        raise InputError(
            f"device '{device}': priority queueing needs {OTHER_PORT} ports, it has {subject.ports}"
        )
    throughput.shoelace(subject)
    common: dict[str, Any] = {"device": device, "size": size, "seed": seed}
    found = [
        Part(name=_pt_name(dimension, value), scenario=scenario, **common)
        for dimension in VALUES
        for value, scenario in varied(dimension)
    ]
    found.append(Part(name="PQ", **common))
    found += [Part(name=f"TP-{length}", frame_bytes=length, **common) for length in throughput.FRAME_BYTES]
    congested = buffers.cases(subject, most_ports=size.congested_ports, most_queues=size.congested_queues)
    found += [Part(name=_bm_name(case), congested=case, **common) for case in congested]
    return found


def measure(part: Part) -> dict[str, Any]:
    """What a part finds, as JSON. Raises `RunError`."""
    if part.scenario is not None:
        subject = _slow(part.device)
        packets = part.size.packets
        times_ns = processing_time.measure(subject, part.scenario, packets=packets, seed=part.seed)
        return asdict(processing_time.summary(times_ns, packets))
    if part.frame_bytes:
        subject = subject_of(part.device)
        lace = part.size.lace_packets
        return asdict(throughput.find(subject, part.frame_bytes, packets=lace, seed=part.seed))
    if part.congested is not None:
        capacity = buffers.measure(subject_of(part.device), *part.congested, seed=part.seed)
        return {} if capacity is None else asdict(capacity)
    subject = _slow(part.device)
    delays = priority_queueing.measure(subject, bursts=part.size.bursts, seed=part.seed)
    verdict = priority_queueing.judge(subject, delays, thresholds())
    return {"mark": verdict.mark.value, "reasons": verdict.reasons, "numbers": verdict.numbers}


def verdicts(found: Mapping[str, Mapping[str, Any]], limits: Thresholds) -> dict[str, Verdict]:
    """The verdict of each dimension, from what all parts found."""
    times: dict[tuple[Dimension, str], Times] = {
        (dimension, value): Times(**found[_pt_name(dimension, value)])
        for dimension in VALUES
        for value, _ in varied(dimension)
    }
    laced = [Throughput(**found[f"TP-{length}"]) for length in throughput.FRAME_BYTES]
    queueing = found["PQ"]
    held = {
        case: Capacity(**found[_bm_name(case)]) if found[_bm_name(case)] else None
        for case in buffers.ALL_CASES
        if _bm_name(case) in found
    }
    judged = {
        "PT": processing_time.judge(times, limits),
        "PQ": Verdict(
            mark=Mark(queueing["mark"]), reasons=tuple(queueing["reasons"]), numbers=queueing["numbers"]
        ),
        "TP": throughput.judge(laced, limits),
        "BM": buffers.judge(held, limits),
    }
    return {name: judged.get(name, _NOT_MEASURED) for name in DIMENSIONS}


def carried_out(
    todo: list[Part], folder: Path, *, jobs: int, tell: Callable[[Part], None]
) -> dict[str, dict[str, Any]]:
    """What all parts find; those that the folder has are not measured again.

    Raises `InputError`, `RunError`.
    """
    _refuse_another(todo[0], folder)
    found = dict(_kept(todo, folder))
    left = [part for part in todo if part.name not in found]
    for part in todo:
        if part.name in found:
            tell(part)
    with closing(each_done(measure, left, jobs=jobs)) as done:
        for place, result in done:
            part = left[place]
            found[part.name] = result
            write_atomically(_file(folder, part), json.dumps(result).encode())
            tell(part)
    return found


def document(device: str, judged: Mapping[str, Verdict]) -> dict[str, Any]:
    """`verdict.json`: the row of table I with the numbers behind each mark."""
    return {
        "device": device,
        "dimensions": {
            name: {"mark": one.mark.value, "reasons": list(one.reasons), "numbers": one.numbers}
            for name, one in judged.items()
        },
        "thresholds": thresholds().model_dump(mode="json"),
    }


def _slow(device: str) -> Subject:
    return subject_of(device, most_rate_bps=processing_time.MOST_RATE_BPS)


def _pt_name(dimension: Dimension, value: str) -> str:
    return f"PT-{dimension}-{value}"


def _bm_name(case: tuple[int, int]) -> str:
    return f"BM-{case[0]}-ports-{case[1]}-queues"


def _file(folder: Path, part: Part) -> Path:
    return folder / "parts" / f"{part.name}.json"


def _kept(todo: list[Part], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in todo:
        path = _file(folder, part)
        if path.exists():
            yield part.name, _read(path, "delete it, and its part is measured again")


def _read(path: Path, mended: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path}: damaged: {mended}") from None


def _refuse_another(part: Part, folder: Path) -> None:
    """Note which campaign a folder has. Raises `InputError` if it has another one."""
    wanted = {
        "profile": hashlib.sha256(profile_text(part.device).encode()).hexdigest(),
        "size": asdict(part.size),
        "seed": part.seed,
        "commit": commit(),
    }
    path = folder / "campaign.json"
    if path.exists():
        if _read(path, f"delete {folder}, or choose another --out") != wanted:
            raise InputError(
                f"{folder}: has parts of a campaign with another profile, size, seed or version: "
                "choose another --out, or delete it"
            )
        return
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(wanted, indent=1).encode())
