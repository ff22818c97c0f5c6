"""Takes what cargo has built into a wheel."""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WORKSPACE: Final = Path(__file__).resolve().parent.parent
CHECKOUT: Final = WORKSPACE.parent
MODULE: Final = "switch_emulator/switch_emulator.abi3.so"
_SHARED: Final = ("ld-linux", "libc.so", "libgcc_s.so", "libm.so", "libpthread.so", "libdl.so", "librt.so")
"""Libraries that every Linux with glibc has, as PEP 600 demands of a `manylinux` wheel."""


class CompiledModule(BuildHookInterface[Any]):
    """The library of `cargo build --release`, under the name that Python loads.

    With `distributed = true` in the wheel's table, the wheel is for other machines: it holds the library and
    the program of `cargo build --profile dist`, and names the commit and the C library that they need.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them. Raises `FileNotFoundError` if they were not built."""
        if version == "editable":  # there the module has a wheel of its own
            return
        # PyO3's feature abi3-py311: one module for Python 3.11 and all that follow.
        build_data["pure_python"] = False
        if not self.config.get("distributed"):
            build_data["force_include"][str(_built("libswitch_emulator.so", "release"))] = MODULE
            build_data["tag"] = f"cp311-abi3-{_platform()}"
            return
        self._made = TemporaryDirectory()
        made = Path(self._made.name)
        module, program = (_built(name, "dist") for name in ("libswitch_emulator.so", "zodiac-fx"))
        build_data["force_include"][str(module)] = MODULE
        build_data["shared_scripts"][str(program)] = "zodiac-fx"
        build_data["tag"] = f"cp311-abi3-{_manylinux((module, program))}"
        for name, content in self._marks().items():
            (made / name).write_bytes(content)
            build_data["force_include"][str(made / name)] = f"loko/data/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what is in the wheel now."""
        if hasattr(self, "_made"):
            self._made.cleanup()

    def _marks(self) -> dict[str, bytes]:
        """File that tells the installed package its commit, and whether it has local changes."""
        spec = importlib.util.spec_from_file_location(
            "provenance", CHECKOUT / "testbed/loko_testbed/tasks/provenance.py"
        )
        assert spec is not None
        assert spec.loader is not None
        provenance = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(provenance)
        files = self.build_config.builder.recurse_included_files()
        marks: dict[str, bytes] = provenance.packed_marks(
            {file.distribution_path: Path(file.path) for file in files}
        )
        return marks


def _built(name: str, profile: str) -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    path = target / profile / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: build it first: cargo build --profile {profile} -p zodiac-live -p zodiac-python"
        )
    return path


def _platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _manylinux(paths: Iterable[Path]) -> str:
    """The platform tag of PEP 600: the oldest glibc that has all that these files ask for."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 - set-up makes its wheel without it

    needed = [(2, 17)]
    for path in paths:
        with path.open("rb") as file:
            elf = ELFFile(file)
            for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED"):
                if not tag.needed.startswith(_SHARED):
                    raise ValueError(
                        f"{path.name} needs {tag.needed}, which not every Linux has: link it statically"
                    )
            for _, versions in elf.get_section_by_name(".gnu.version_r").iter_versions():
                names = (version.name for version in versions if version.name.startswith("GLIBC_2."))
                needed += [(2, int(name.split(".")[1])) for name in names]
    major, minor = max(needed)
    return _platform().replace("linux", f"manylinux_{major}_{minor}", 1)
