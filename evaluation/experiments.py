"""The experiments that there are: `labs/LAB/experiments/FIGURE.yml`, one figure or table of a paper each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from evaluation.facts import Fact, fact
from evaluation.figure import Claim, Figure
from evaluation.folder import full_name
from evaluation.kinds import kind_named, kind_names
from evaluation.result import in_order
from loko.document import LABS, InputError, error_at, read


class _Kind(BaseModel):
    kind: str


def load_experiment(path: Path) -> Figure:
    """Read and check an experiment's file. Raises `InputError`, one line."""
    name = read(path, _Kind).kind
    if name not in kind_names():
        raise error_at(path, ("kind",), f"'{name}' is unknown (known: {', '.join(kind_names())})")
    experiment: Figure = read(path, kind_named(name).document)
    try:
        for claim in experiment.claims:
            check_reference(experiment, claim)
        for note in experiment.notes:
            fact(experiment.paper, note.fact)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return experiment


def check_reference(figure: Figure, claim: Claim) -> Fact:
    """The fact behind a claim. Raises `InputError` if it is missing or lacks the number its check needs."""
    found = fact(figure.paper, claim.fact)
    if claim.check.needs_number:
        _ = found.number
    return found


def experiments(labs: Path = LABS) -> dict[str, Figure]:
    """Every experiment of every lab by its full name, tables first, then by name. Raises `InputError`."""
    found: dict[str, Figure] = {}
    loaded = [load_experiment(path) for path in sorted(labs.glob("*/experiments/*.yml"))]
    for experiment in sorted(loaded, key=lambda one: (one.kind != "table", in_order(one.paper, one.figure))):
        if experiment.name in found:
            raise InputError(f"{labs}: two experiments are named {experiment.name}; rename one")
        found[experiment.name] = experiment
    return found


def select(names: Sequence[str], known: dict[str, Figure], mode: str = "virtual") -> list[Figure]:
    """The experiments with these names; bare ones mean ``loko/``. Raises `InputError`.

    Without names: all that can be replayed in this mode.
    """
    chosen: list[Figure] = []
    for name in names or (name for name, figure in known.items() if mode in figure.modes):
        full = full_name(name)
        if full not in known:
            raise InputError(f"figure '{name}': unknown (known: {', '.join(known)})")
        if known[full] not in chosen:
            chosen.append(known[full])
    return chosen
