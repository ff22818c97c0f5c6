"""The document of a study: how much it measures, at full size and with ``--quick``."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator

from loko.document import StrictModel
from loko_testbed.reproduce.figure import IN_TASKS
from loko_testbed.reproduce.finding_checks import FindingFigure
from loko_testbed.reproduce.studies.study import Study, study_named


class StudyFigure(FindingFigure):
    """A figure that shows what a study found."""

    kind: Literal["study"]
    supported_options = IN_TASKS
    measured_by: str
    """The module of the study in `loko_testbed.reproduce.studies`."""
    full: dict[str, Any]
    """The size of the study, in the keys of `Study.size`."""
    quick: dict[str, Any]
    """The keys whose values differ with ``--quick``."""

    @property
    def study(self) -> Study:
        """The code of the study."""
        return study_named(self.measured_by)

    @property
    def needs_root(self) -> bool:
        """See `Figure.needs_root`."""
        return self.study.needs_root

    def size(self, *, quick: bool, runs: int | None = None) -> StrictModel:
        """Return how much is measured; `runs` replaces that of the document, if it has any."""
        keys = {**self.full, **(self.quick if quick else {})}
        if runs is not None and "runs" in keys:
            keys["runs"] = runs
        return self.study.size.model_validate(keys, strict=False)

    @model_validator(mode="after")
    def _sizes_are_valid(self) -> Self:
        for quick in (False, True):
            self.size(quick=quick)
        return self
