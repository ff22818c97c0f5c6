"""Test the reasons why claims fail: replay a figure with an alternative set-up and judge the claim again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue, ValidationError

from loko.document import LABS, InputError, find
from loko.switch_model.device import profile_text
from loko_testbed.reproduce.claims import judge
from loko_testbed.reproduce.figure import Claim, Experiment, Figure, LabFigure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.bench.document import BenchFigure
from loko_testbed.reproduce.result import ClaimResult, FigureResult, TrafficResult
from loko_testbed.simulation.options import recorded_options
from loko_testbed.tasks.progress import Progress

_SEED = 1


def replay_with(
    figure: Figure, experiment: Experiment, out: Path, progress: Progress, *, jobs: int = 1
) -> FigureResult:
    """Return the result of a figure with the experiment's set-up, for `judge_with`.

    Depends on `set_up_of` the experiment alone. The scale of the replay is the experiment's, and counts as
    the paper's. Raises `InputError` for a set-up that the figure does not have.
    """
    replaced = dict(experiment.replaces)
    if experiment.profile:
        replaced |= _of_profile(figure, experiment.profile, out)
    changed = with_values(figure, replaced)
    options = recorded_options({"mode": "virtual", "seed": _SEED, **experiment.options}, out=out, jobs=jobs)
    (result,) = figure_type_named(figure.kind).compute([changed], options, progress)
    return result


def set_up_of(experiment: Experiment) -> str:
    """Return what a replay of the experiment depends on, as text; equal set-ups have equal replays."""
    return experiment.model_dump_json(include={"replaces", "profile", "options"})


def judge_with(figure: Figure, claim: Claim, experiment: Experiment, result: FigureResult) -> ClaimResult:
    """Return the judgement of the claim by the figure's result with the experiment's set-up."""
    changed = with_values(figure, experiment.replaces)
    if experiment.finding:
        check = claim.check.model_copy(update={"finding": experiment.finding})
        claim = claim.model_copy(update={"check": check})
    (judged,) = judge(
        changed.model_copy(update={"claims": [claim]}),
        series=result.series if isinstance(result, TrafficResult) else (),
        table=result.table,
        findings=result.findings,
    )
    return judged


def with_values(figure: Figure, values: Mapping[str, JsonValue]) -> Figure:
    """Return the figure with the values of its document at these paths replaced.

    Raises `InputError` if there is no such path, or if the values do not fit.
    """
    document = deepcopy(figure.model_dump(mode="json", exclude_unset=True))
    for path, value in values.items():
        *folders, last = path.split(".")
        place: Any = document
        try:
            for folder in folders:
                place = place[_key(place, folder)]
            place[_key(place, last)] = value
        except (KeyError, IndexError, TypeError, ValueError):
            raise InputError(f"{figure.name}: its document has no {path}; correct replaces") from None
    try:
        return type(figure).model_validate(document)
    except ValidationError as error:
        raise InputError(f"{figure.name}: {', '.join(values)}: {error.errors()[0]['msg']}") from None


def _of_profile(figure: Figure, numbers: Mapping[str, int], folder: Path) -> dict[str, JsonValue]:
    """Return the values of the document that give the figure's switches a profile with these numbers.

    The profile, and the lab if the figure has one, are written to the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(figure, BenchFigure):
        return {"device.virtual": str(_profile(figure.device["virtual"], numbers, folder))}
    if not isinstance(figure, LabFigure):
        raise InputError(f"{figure.name}: has no single profile; leave profile out of the experiment")
    lab = yaml.safe_load(find(figure.lab, LABS, "/lab.yml", "lab").read_text(encoding="utf-8"))
    for switch in lab["switches"].values():
        switch["profile"] = str(_profile(switch["profile"], numbers, folder))
    path = folder / "lab.yml"
    path.write_text(yaml.safe_dump(lab), encoding="utf-8")
    return {"lab": str(path)}


def _profile(name: str, numbers: Mapping[str, int], folder: Path) -> Path:
    path = folder / f"{name}.toml"
    text = profile_text(name)
    for number, value in numbers.items():
        path.write_text(text, encoding="utf-8")
        section, _, key = number.rpartition(".")
        text = profile_text(path, section, **{key: value})
    path.write_text(text, encoding="utf-8")
    return path


def _key(place: Mapping[str, Any] | Sequence[Any], name: str) -> Any:
    return int(name) if isinstance(place, list) else name
