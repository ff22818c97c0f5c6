"""The reasons why claims fail: every experiment that tests one has the outcome that its document states."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from loko_testbed.reproduce.figure import Claim, Experiment, Figure
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.reasons import judge_with, replay_with, set_up_of
from loko_testbed.tasks.progress import NoProgress


def _set_up_of_case(case: tuple[Claim, Experiment]) -> str:
    return set_up_of(case[1])


REPLAYS = [
    pytest.param(figure, cases, id=f"{name}-{cases[0][0].claim}-{cases[0][1].using}")
    for name, figure in experiments().items()
    for _, same in groupby(
        sorted(
            ((claim, experiment) for claim in figure.claims for experiment in claim.tested_by),
            key=_set_up_of_case,
        ),
        _set_up_of_case,
    )
    for cases in [list(same)]
]
"""The set-ups of all experiments, each with the claims that are judged with it."""


@pytest.mark.parametrize(("figure", "cases"), REPLAYS)
def test_an_experiment_turns_the_claims_or_not_as_its_document_says(
    figure: Figure, cases: list[tuple[Claim, Experiment]], tmp_path: Path
) -> None:
    result = replay_with(figure, cases[0][1], tmp_path, NoProgress())
    judged = [judge_with(figure, claim, experiment, result) for claim, experiment in cases]
    assert [claim.holds for claim in judged] == [experiment.holds for _, experiment in cases], [
        f"{claim.claim}: paper: {claim.paper}, here: {claim.here}" for claim in judged
    ]
