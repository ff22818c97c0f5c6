"""Dissect captures with tshark, for tests that compare them with what was written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from continuous_integration import has_all_programs

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None and not has_all_programs(), reason="needs tshark: make clients"
)
"""On CI under Debian such tests fail without it."""
_FIELDS: Final = (
    "frame.number",
    "frame.interface_name",
    "frame.time_epoch",
    "frame.comment",
    "_ws.expert.severity",
    "_ws.expert.message",
    "openflow_1_0.type",
    "openflow_v4.type",
)
_WARNING: Final = 0x60_0000
"""Severity of a warning; those of errors are above."""
_TSHARKS_OWN_GAP: Final = "Message data not dissected yet"
"""Remark of tshark on the bodies of most messages of OpenFlow 1.0, whatever they hold."""


class Dissected(NamedTuple):
    """A frame as tshark shows it."""

    number: int
    interface: str
    at_ns: int
    comment: str
    warnings: tuple[str, ...]
    """Warnings and errors."""
    is_openflow: bool


def dissected(path: Path, *options: str) -> list[Dissected]:
    """Return the frames of a capture, which tshark must read to its end without complaint."""
    words = ["tshark", "-r", str(path), *options, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|"]
    words += [word for field in _FIELDS for word in ("-e", field)]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    said = [line for line in answer.stderr.splitlines() if "Running as user" not in line]
    assert (answer.returncode, said) == (0, []), answer.stderr
    return [_frame(line.split("\t")) for line in answer.stdout.splitlines()]


def _frame(columns: list[str]) -> Dissected:
    number, interface, at, comment, severities, messages, *types = columns
    seconds, _, fraction = at.partition(".")
    warnings = [
        message
        for severity, message in zip(severities.split("|"), messages.split("|"), strict=True)
        if severity and int(severity) >= _WARNING and not message.startswith(_TSHARKS_OWN_GAP)
    ]
    at_ns = int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
    return Dissected(int(number), interface, at_ns, comment, tuple(warnings), any(types))
