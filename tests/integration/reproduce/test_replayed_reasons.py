"""The reasons why claims fail: every experiment that tests one has the outcome that its document states."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko_testbed.reproduce.figure import Claim, Experiment, Figure
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.reasons import judge_with
from loko_testbed.tasks.progress import NoProgress

FIGURES = experiments()
EXPERIMENTS = [
    pytest.param(figure, claim, experiment, id=f"{name}-{claim.claim}-{experiment.using}")
    for name, figure in FIGURES.items()
    for claim in figure.claims
    for experiment in claim.tested_by
]


@pytest.mark.parametrize(("figure", "claim", "experiment"), EXPERIMENTS)
def test_an_experiment_turns_the_claim_or_not_as_its_document_says(
    figure: Figure, claim: Claim, experiment: Experiment, tmp_path: Path
) -> None:
    judged = judge_with(figure, claim, experiment, tmp_path, NoProgress())
    assert judged.holds is experiment.holds, f"paper: {judged.paper}, here: {judged.here}"
