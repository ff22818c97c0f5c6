"""The folder of captures."""

from __future__ import annotations

from pathlib import Path

from loko.document import InputError


def empty_folder(folder: Path) -> None:
    """Make a folder for captures. Raises `InputError` if it has something already, or cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"--pcap {folder}: has files already; choose a new or empty folder")
    except OSError as error:
        raise InputError(f"--pcap {folder}: cannot be used: {error.strerror}") from None
