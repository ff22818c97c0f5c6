"""Replay figures: compute their results by figure type, then judge, draw and write them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.claims import evaluate_claims
from loko_testbed.reproduce.figure import Figure
from loko_testbed.reproduce.figure_types import figure_type_named
from loko_testbed.reproduce.figure_types.experiments import experiments_named
from loko_testbed.reproduce.folder import figure_file
from loko_testbed.reproduce.outcome import OneByOne
from loko_testbed.reproduce.replay.tasks import equal_tasks_once
from loko_testbed.reproduce.replications import replicate
from loko_testbed.reproduce.report import write_report
from loko_testbed.reproduce.result import (
    Band,
    ClaimResult,
    FigureResult,
    GuaranteeResult,
    Replication,
    read_results,
    write_result,
)
from loko_testbed.reproduce.runs import FigureRun, read_runs, write_runs
from loko_testbed.simulation.options import Options, recorded_options
from loko_testbed.tasks.executor import each_done, shared_processes
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.progress import Progress
from loko_testbed.tasks.provenance import commit, machine, this_moment

_PUBLISHING_SHARE: Final = 20
"""Pictures and report are not made again before this many times as long as making them took has passed."""
_COARSE: Final = (
    "Open vSwitch forwarded in place of the boards: this is the coarse emulator's error"
    " (docs/stand-in.md). {}"
)


def evaluate(chosen: Sequence[Figure], options: Options, progress: Progress) -> list[FigureResult]:
    """Replay the figures and write their results, records, pictures and the report to ``options.out``.

    Each figure's result is written as soon as it is computed; pictures and report follow in steps, so that a
    replay that is killed leaves those of the figures before. Results that exist already with the same
    parameters are not computed again. Raises `InputError` or `RunError`, each with a message of one line.
    """
    with shared_processes(options.jobs), equal_tasks_once():
        folder = _Publication(options, progress)
        for figure, result in _computed(chosen, options, progress):
            folder.add(figure, result)
            folder.draw_if_due()
        folder.draw()
    return [folder.results[figure.name] for figure in chosen]


def replay_undrawn(chosen: Sequence[Figure], options: Options, progress: Progress) -> None:
    """Replay the figures and write their results and records; `publish_again` makes what follows from them.

    Raises `InputError` or `RunError`, each with a message of one line.
    """
    with shared_processes(options.jobs), equal_tasks_once():
        folder = _Publication(options, progress)
        for figure, result in _computed(chosen, options, progress):
            folder.add(figure, result)


def publish_again(options: Options, progress: Progress) -> None:
    """Judge, write and draw all results of ``options.out`` again, and write the report.

    Depends on the results, records and `runs.jsonl` of the folder, and of the options on `out` and `jobs`
    alone. Raises `InputError`, one line.
    """
    results = {result.name: result for result in read_results(options.out)}
    again = {result.name: result for result in _judged_again(results, results.values(), options)}
    published = list({**results, **again}.values())
    for result in published:
        write_result(result, options.out)
    drawn = _drawn(published, options, progress)
    _write_pictures(drawn, options.out)
    write_report(options.out, drawn)


def _computed(
    chosen: Sequence[Figure], options: Options, progress: Progress
) -> Iterator[tuple[Figure, FigureResult]]:
    """Compute the figures, type by type; yield each with its result, neither judged nor drawn yet.

    A figure with claims that need further seeds is yielded again, with its replications.
    """
    for name in dict.fromkeys(figure.kind for figure in chosen):
        same_type = [figure for figure in chosen if figure.kind == name]
        compute = figure_type_named(name).compute
        for figures in [[figure] for figure in same_type] if isinstance(compute, OneByOne) else [same_type]:
            results: dict[str, FigureResult] = {}
            with _noted(figures, options.out):
                for figure, result in zip(figures, compute(figures, options, progress), strict=True):
                    results[figure.name] = result
                    yield figure, result
            for figure in figures:
                replications = _replications(figure, options, progress)
                if replications:
                    result = results[figure.name]
                    yield figure, result.model_copy(update={"replications": replications})


def _replications(figure: Figure, options: Options, progress: Progress) -> list[Replication]:
    """Replay a figure at the further seeds that its claims need, and record how long that took."""
    begun_s = time.monotonic()
    others = replicate(figure, options, progress)
    if others.computed:
        run = read_runs(options.out)[figure.name]
        seconds = round(time.monotonic() - begun_s, 1)
        write_runs(options.out, [run.model_copy(update={"seeds_seconds": seconds})])
    return others.results


@contextmanager
def _noted(figures: Sequence[Figure], out: Path) -> Iterator[None]:
    """Record start, duration and machine of those figures whose records change within the ``with`` block.

    Each figure's records are written when it is complete, so their time tells figures apart that were
    replayed together.
    """
    before = {figure.name: _state(figure, out) for figure in figures}
    known = read_runs(out)
    began, begun_ns = this_moment(), time.time_ns()
    yield
    states = {figure.name: _state(figure, out) for figure in figures}
    made = [
        name
        for name, state in states.items()
        if name not in known or not before[name] or before[name] != state
    ]
    ends_ns = {name: state[1] if (state := states[name]) else begun_ns for name in made}
    ends_ns = dict(sorted(ends_ns.items(), key=lambda end: end[1]))
    seconds = {
        name: round(max(0, end_ns - start_ns) / 1e9, 1)
        for (name, end_ns), start_ns in zip(ends_ns.items(), [begun_ns, *ends_ns.values()], strict=False)
    }
    write_runs(
        out,
        (
            FigureRun(
                figure=name,
                began=began,
                seconds=seconds[name],
                together_with=[other for other in made if other != name],
                machine=machine(),
                commit=commit(),
            )
            for name in made
        ),
    )


def _state(figure: Figure, out: Path) -> tuple[int, int] | None:
    """Return a token that changes whenever the figure's records are rewritten; None if there are none."""
    try:
        facts = figure_file(out, figure.name, ".parquet").stat()
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns


class _Publication:
    """The files of a folder while figures are added: results at once, pictures and report in steps.

    Every figure is judged together with the others of the folder. Those that were there before are judged
    and drawn again where the new one changes that, so that claims and bands do not depend on the order in
    which figures are replayed.
    """

    def __init__(self, options: Options, progress: Progress) -> None:
        """Read the results that the folder has. Raises `InputError` if one is damaged."""
        self._options = options
        self._progress = progress
        self.results = {result.name: result for result in read_results(options.out)}
        """The folder's results by full name, as they are judged now."""
        self._pictures: dict[str, pictures.RenderedPictures] = {}
        self._undrawn: set[str] = set()
        self._due_s = 0.0

    def add(self, figure: Figure, result: FigureResult) -> None:
        """Judge and write a computed result."""
        others = {name: other for name, other in self.results.items() if name != figure.name}
        together = [*others.values(), result]
        changed = [
            _judged(figure, result, together, self._options),
            *_judged_again(others, together, self._options),
        ]
        for each in changed:
            write_result(each, self._options.out)
            self.results[each.name] = each
            self._undrawn.add(each.name)

    def draw_if_due(self) -> None:
        """Draw and report if the last time was long enough ago."""
        if time.monotonic() >= self._due_s:
            self.draw()

    def draw(self) -> None:
        """Draw what was added since the last time, and write the report with the runs recorded by now.

        Of figures that were computed together, runs are recorded when the last is complete.
        """
        begun_s = time.monotonic()
        missing = [
            result
            for name, result in self.results.items()
            if name in self._undrawn or name not in self._pictures
        ]
        self._pictures |= _drawn(missing, self._options, self._progress)
        _write_pictures({name: self._pictures[name] for name in self._undrawn}, self._options.out)
        self._undrawn.clear()
        write_report(self._options.out, self._pictures)
        ended_s = time.monotonic()
        self._due_s = ended_s + _PUBLISHING_SHARE * (ended_s - begun_s)


def _judged(
    figure: Figure, result: FigureResult, together: Collection[FigureResult], options: Options
) -> FigureResult:
    """Return a result with claims, guarantees and bands, as the results of its folder make them.

    `options` are those that it was replayed with.
    """
    claims = evaluate_claims(figure, result, together, options)
    return result.model_copy(
        update={
            "claims": _with_reasons(claims, result),
            "guarantees": guarantees_of(result),
            "printed": figure.printed(),
            "bands": bands_of(result, together),
            "provenance": result.provenance.model_copy(update={"options": options.chosen()}),
        }
    )


def _judged_again(
    earlier: Mapping[str, FigureResult], together: Collection[FigureResult], options: Options
) -> list[FigureResult]:
    """Return those of a folder's earlier results that change because others joined them.

    Only this version of the program judges its own results anew; of other versions only bands may go.
    """
    changed = []
    ours = {name for name, result in earlier.items() if result.provenance.commit == commit()}
    known = experiments_named(sorted(ours)) if ours else {}
    for name, result in earlier.items():
        if name in ours & known.keys() and result.provenance.options:
            made_with = recorded_options(result.provenance.options, out=options.out, jobs=options.jobs)
            anew = _judged(known[name], result, together, made_with)
        else:
            anew = result.model_copy(update={"bands": bands_of(result, together)})
        if anew != result:
            changed.append(anew)
    return changed


def bands_of(result: FigureResult, together: Iterable[FigureResult]) -> list[Band]:
    """Return the bands that results of the folder predict for this one, and those it predicts for others.

    Bands come from, and apply to, replays in virtual time by the same version of the program only.
    """
    of_others = [band for band in result.bands if band.figure != result.name]
    if result.mode != "virtual":
        return of_others
    return of_others + [
        band
        for other in together
        if other.name != result.name
        and (other.mode, other.provenance.commit) == (result.mode, result.provenance.commit)
        for band in other.bands
        if band.figure == result.name
    ]


def guarantees_of(result: FigureResult) -> list[GuaranteeResult]:
    """Return the guarantees of a result; where Open vSwitch forwarded frames, none of them is promised."""
    if not result.switched_by_open_vswitch:
        return result.guarantees
    return [guarantee.model_copy(update={"verdict": "not promised"}) for guarantee in result.guarantees]


def _with_reasons(claims: Sequence[ClaimResult], result: FigureResult) -> list[ClaimResult]:
    """Return the claims; where Open vSwitch forwarded frames, give that as the reason for those that fail."""
    if not result.switched_by_open_vswitch:
        return list(claims)
    return [
        claim.model_copy(update={"because": _COARSE.format(claim.because).strip()})
        if claim.holds is False
        else claim
        for claim in claims
    ]


def _drawn(
    results: Sequence[FigureResult], options: Options, progress: Progress
) -> dict[str, pictures.RenderedPictures]:
    """Draw the pictures, several at a time; return them by figure."""
    drawn: dict[str, pictures.RenderedPictures] = {}
    for place, these in each_done(pictures.draw, results, jobs=min(options.jobs, len(results))):
        progress.writing(results[place].name)
        drawn[results[place].name] = these
    return drawn


def _write_pictures(drawn: Mapping[str, pictures.RenderedPictures], out: Path) -> None:
    for figure, these in drawn.items():
        write_atomically(figure_file(out, figure, ".svg"), these.svg)
        write_atomically(figure_file(out, figure, ".png"), these.png)
