"""The command `loko mininet`: the emulated board for Mininet, and for scripts that use Mininet."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

import loko_testbed
from loko.document import InputError
from loko_testbed.instruments.programs import locate

_FOLDER: Final = Path(loko_testbed.__file__).resolve().parent / "mininet"
"""That package is not imported here: only Mininet's own Python is sure to have Mininet."""

mininet_app = typer.Typer(add_completion=False)


# A script's own options are the script's.
@mininet_app.command(
    "mininet", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def mininet(
    script: Annotated[
        Path | None,
        typer.Argument(
            help="A script of yours that uses Mininet; needs root. Without: print a path.", show_default=False
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script.", show_default=False)
    ] = None,
) -> None:
    """Print the file that adds emulated boards to 'mn', or run a script that has them in its network.

    The script runs under Mininet's own Python, and finds `loko_testbed.mininet` there.

    Example: sudo mn --custom "$(loko mininet)" --switch zodiac --topo linear,3 --controller remote
    """
    if script is None:
        typer.echo(_FOLDER / "custom.py")
        return
    if not script.is_file():
        raise InputError(f"{script}: no such script; give the path of a Python file that uses Mininet")
    program = locate("mn")
    if program is None:
        raise InputError("the program 'mn' is missing: install it with 'apt-get install mininet'")
    python = _interpreter(Path(program))
    os.execvp(  # noqa: S606 - the script takes this program's place, with its terminal and signals
        python[0], [*python, str(_FOLDER / "run_script.py"), str(script), *(arguments or ())]
    )


def _interpreter(program: Path) -> list[str]:
    """Return the words that start the Python of `mn`, from the file's first line."""
    with program.open("rb") as file:
        first = file.readline().decode("utf-8", "replace").strip()
    words = shlex.split(first.removeprefix("#!")) if first.startswith("#!") else []
    if not words or not any("python" in word for word in words):
        raise InputError(f"{program}: its first line names no Python; reinstall Mininet")
    return words
