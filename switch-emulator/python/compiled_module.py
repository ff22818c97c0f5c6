"""Takes the module that cargo has built into the wheel, so that the wheel holds what was tested."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WORKSPACE = Path(__file__).resolve().parent.parent


class CompiledModule(BuildHookInterface[Any]):
    """The library of `cargo build --release`, under the name that Python loads."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Add the library. Raises `FileNotFoundError` if it was not built."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
        library = target / "release" / "libswitch_emulator.so"
        if not library.is_file():
            raise FileNotFoundError(f"{library}: build it first: cargo build --release -p zodiac-python")
        build_data["force_include"][str(library)] = "switch_emulator/switch_emulator.abi3.so"
        build_data["pure_python"] = False
        # PyO3's feature abi3-py311: one module for Python 3.11 and all that follow.
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_')}"
