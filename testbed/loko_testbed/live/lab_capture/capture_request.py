"""The request to capture a live lab, by its first process to the program that captures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.lab import Backend, Endpoint, Lab
from loko_testbed.simulation.options import Builder

CAPTURE_PROGRAM: Final = "loko_testbed.live.lab_capture.program"
"""Module of the program that captures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFolder:
    """Folder of the captures of a lab, and their limit."""

    path: Path
    """Absolute."""
    limit_bytes: int
    """Of all files together; then capturing ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CableTap:
    """An interface at which frames leave a cable: each frame that passes the cable is seen once."""

    interface: str
    namespace: Path | None
    """File of its network namespace; None: that of the switches."""
    source: Endpoint
    destination: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """All that the program needs to know."""

    lab: Lab
    folder: CaptureFolder
    taps: tuple[CableTap, ...]
    flows: tuple[Flow, ...]
    """The flows that comments name."""
    controller_ready: Path
    """The file of `loko.control` with the guarantees of admitted flows, as soon as it exists."""
    log_folder: Path
    """Emulators have their logs in folders of this one."""


def refuse_capture(lab: Lab, builder: Builder, folder: Path, *, private: Path) -> None:
    """Raise `InputError` if the ports of a lab cannot be captured, or the files would not stay.

    Files below the folder `private` are visible in the lab only.
    """
    if builder is Builder.CONTAINERLAB:
        raise InputError("--pcap: the ports of containers are not captured; leave it or --builder out")
    if real := lab.behind(Backend.HARDWARE):
        names = ", ".join(switch.name for switch in real)
        raise InputError(f"--pcap: the ports of real boards ({names}) are not captured; leave it out")
    if folder.resolve().is_relative_to(private):
        raise InputError(f"--pcap {folder}: a lab has a {private} of its own; choose a folder elsewhere")
