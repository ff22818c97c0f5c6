"""The replay of figures: have each kind produce its own, judge, draw, write."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation import pictures
from evaluation.claims import judge
from evaluation.executor import each_done
from evaluation.figure import Figure
from evaluation.files import write_atomically
from evaluation.kinds import kind_named
from evaluation.options import Options, Progress
from evaluation.report import write_report
from evaluation.result import FigureResult, read_results, write_result


def evaluate(chosen: Sequence[Figure], options: Options, progress: Progress) -> list[FigureResult]:
    """Replay the figures and write their results, records, pictures and the report to ``options.out``.

    What is there already with the same parameters is not produced again. Raises `InputError` or
    `RunError` in one line.
    """
    earlier = read_results(options.out)
    found: dict[str, FigureResult] = {}
    for name in dict.fromkeys(figure.kind for figure in chosen):
        alike = [figure for figure in chosen if figure.kind == name]
        results = kind_named(name).produce(alike, options, progress)
        found.update(zip((figure.name for figure in alike), results, strict=True))
    return _publish(chosen, [found[figure.name] for figure in chosen], earlier, options, progress)


def _publish(
    chosen: Sequence[Figure],
    results: Sequence[FigureResult],
    earlier: Sequence[FigureResult],
    options: Options,
    progress: Progress,
) -> list[FigureResult]:
    """Judge every figure beside the others of the folder, draw it, and write everything but the records."""
    together = {one.figure: one for one in (*earlier, *results)}
    judged = []
    for figure, result in zip(chosen, results, strict=True):
        claims = judge(
            figure,
            series=result.series,
            table=result.table,
            findings=result.findings,
            others={
                name: one.series
                for name, one in together.items()
                if one.figure != result.figure and one.series and _same_scale(one, result)
            },
            shorter=figure.shorter(options),
        )
        judged.append(result.model_copy(update={"claims": claims}))
        write_result(judged[-1], options.out)
    _draw(judged, options, progress)
    return judged


def _same_scale(one: FigureResult, other: FigureResult) -> bool:
    """Whether two figures can be compared: replayed in the same way and for as long."""
    ways = [
        (result.mode, result.provenance.backend, result.provenance.runs, result.provenance.seconds)
        for result in (one, other)
    ]
    return ways[0] == ways[1]


def _draw(results: Sequence[FigureResult], options: Options, progress: Progress) -> None:
    """The pictures, several at a time, and the report with them."""
    drawn: dict[str, pictures.Drawn] = {}
    for place, these in each_done(pictures.draw, results, jobs=min(options.jobs, len(results))):
        figure = results[place].figure
        progress.writing(figure)
        write_atomically(options.out / f"{figure}.svg", these.svg)
        write_atomically(options.out / f"{figure}.png", these.png)
        drawn[figure] = these
    write_report(options.out, drawn)
