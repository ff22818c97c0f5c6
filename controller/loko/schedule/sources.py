"""Configuration of a host's source: the files that `zodiac-fx slots` reads (docs/tssdn.md, "A source")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from loko.document import InputError
from loko.schedule.lab_schedule import LabSchedule
from loko.topology.frame import Addressed, frame_of
from loko.topology.lab import Lab

_WRITTEN: Final = "# Written by loko: "
"""How such a file begins."""
WATCH_NS: Final = 100_000
"""The source wakes up so long before a slot: a timer alone is tens of microseconds late."""
STALL_THRESHOLD_US: Final = 50
"""A longer gap between two looks at the clock is a stall."""
_ENDING: Final = ".toml"


_Keys = dict[str, str | int]


class ScheduledSend(NamedTuple):
    """A flow of a host, and when it sends."""

    flow: Addressed
    offset_ns: int
    """After each whole period of its own on the wall clock."""
    period_ns: int


def source_document(lab: Lab, host: str, base_period_ns: int, sends: Iterable[ScheduledSend]) -> str:
    """Return what a host's source sends until it is stopped.

    Interfaces have the names that they have in a running lab.
    """
    head: _Keys = {
        "path": "packet-ring",
        "period_ns": base_period_ns,
        "watch_ns": WATCH_NS,
        "scheduling": "deadline",
        "stall_threshold_us": STALL_THRESHOLD_US,
    }
    flows: list[_Keys] = [
        {
            "source": lab.hosts[host].device,
            "offset_ns": slotted.offset_ns,
            "period_ns": slotted.period_ns,
            "frame": frame_of(lab, slotted.flow).hex(),
        }
        for slotted in sends
    ]
    comment = f"{_WRITTEN}host {host} of lab {lab.name}; run 'zodiac-fx slots' with it on that host\n"
    return comment + slots_file(head, flows)


def slots_file(head: Mapping[str, str | int], flows: Sequence[Mapping[str, str | int]]) -> str:
    """A file for `zodiac-fx slots`: its keys, and those of each flow (switch-emulator/slot-sender)."""
    lines = [*_keys(head)]
    for flow in flows:
        lines += ["[[flow]]", *_keys(flow)]
    return "\n".join(lines) + "\n"


def _keys(values: Mapping[str, str | int]) -> list[str]:
    # A string of JSON is one of TOML, too.
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]


def write_sources(schedule: LabSchedule, folder: Path) -> Sequence[Path]:
    """Write the file of each host that sends, and take away those of hosts that send no more.

    Raises `InputError` if that is not possible; before it writes anything, for a file that is not of here.
    """
    lab = schedule.lab
    sends: dict[str, list[ScheduledSend]] = {host: [] for host in lab.hosts}
    for scheduled in schedule.scheduled:
        sends[scheduled.timed.source].append(
            ScheduledSend(scheduled.timed, scheduled.offset_ns, scheduled.every_ns)
        )
    files = {host: folder / f"{host}{_ENDING}" for host in sends}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files.values():
            if file.exists() and not file.read_text(encoding="utf-8").startswith(_WRITTEN):
                raise InputError(f"--sources {file}: was not written by loko; choose another folder")
        for host, file in files.items():
            if sends[host]:
                text = source_document(lab, host, schedule.timing.base_period_ns, sends[host])
                file.write_text(text, encoding="utf-8")
            else:
                file.unlink(missing_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise InputError(f"--sources {folder}: {reason}; choose another folder") from None
    return [file for host, file in files.items() if sends[host]]
