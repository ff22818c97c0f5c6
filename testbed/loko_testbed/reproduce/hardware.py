"""Mode ``hardware``: a replay in real time in which at least one switch is a real board.

The lab's file says which of its switches are real boards. As real boards belong to one machine, but labs are
for all, a separate cabling file may say so instead (`loko.topology.cabling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loko.document import InputError
from loko.topology.cabling import load_cabling
from loko.topology.lab import Backend, load_lab
from loko_testbed.reproduce.figure import Figure, LabFigure

MODE = "hardware"


def select_by_boards(
    figures: Sequence[Figure], mode: str, cabling: Path | None, *, all_or_none: bool
) -> list[Figure]:
    """Return the figures that the mode can replay: with real boards in mode `MODE`, else without any.

    With `all_or_none`, raises `InputError` for the first figure that it cannot. Otherwise leaves such
    figures out, and raises only if none remains; real boards can be cabled for one lab at a time, so in mode
    `MODE` only the figures of one lab remain.
    """
    if mode != MODE and cabling is not None:
        raise InputError(f"--cabling: names real boards, which are for --mode {MODE}; not for --mode {mode}")
    if cabling is not None:
        load_cabling(cabling)  # report errors of the file itself before those that concern a lab
    fitting: list[Figure] = []
    refusals: list[InputError] = []
    for figure in figures:
        try:
            _refuse_other_boards(figure, mode, cabling)
            fitting.append(figure)
        except InputError as error:
            if all_or_none:
                raise
            refusals.append(error)
    if refusals and not fitting:
        raise refusals[0]
    if mode == MODE and not all_or_none:
        return [figure for figure in fitting if _lab_of(figure) == _lab_of(fitting[0])]
    return fitting


def _lab_of(figure: Figure) -> str:
    return figure.lab if isinstance(figure, LabFigure) else ""


def _refuse_other_boards(figure: Figure, mode: str, cabling: Path | None) -> None:
    if mode not in figure.modes:
        raise InputError(f"{figure.name}: cannot be replayed in mode {mode}")
    if not isinstance(figure, LabFigure):
        return
    lab = load_lab(figure.lab, cabling)
    real = lab.behind(Backend.HARDWARE)
    if mode == MODE and not real:
        raise InputError(
            f"--mode {MODE}: no switch of the lab {lab.name} is a real board: say with --cabling FILE which"
            " are, and how they are cabled (docs/hardware.md)"
        )
    if mode != MODE and real:
        raise InputError(f"{lab.path}: {real[0].name} is a real board: use --mode {MODE}")
