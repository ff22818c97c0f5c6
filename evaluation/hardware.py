"""Mode ``hardware``: a replay in real time in which at least one switch is a real board.

Which of a lab's switches are real is said by its own file or, as real boards are of one machine and labs are
of all, by a cabling (`loko.cabling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.figure import Figure, LabFigure
from loko.cabling import load_cabling
from loko.document import InputError
from loko.lab import Backend, load_lab

MODE = "hardware"


def with_boards_at_hand(
    figures: Sequence[Figure], mode: str, cabling: Path | None, *, all_or_none: bool
) -> list[Figure]:
    """The figures whose labs are as the mode wants them: with real boards, or without any.

    Raises `InputError`, one line, for the first that cannot be. Unless `all_or_none`, those are left out, and
    it is raised only if none is left; of those with real boards, which have one place at a time, the figures
    of one lab are left.
    """
    if mode != MODE and cabling is not None:
        raise InputError(f"--cabling: names real boards, which are for --mode {MODE}; not for --mode {mode}")
    if cabling is not None:
        load_cabling(cabling)  # what is wrong in itself is told before what does not fit a lab
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
