"""The report on a folder of results: one self-contained HTML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jinja2 import Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from loko.document import InputError
from loko.html_templates import html_templates
from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.facts import paper_title, papers
from loko_testbed.reproduce.figure_types.experiments import not_replayed
from loko_testbed.reproduce.folder import short_name
from loko_testbed.reproduce.headlines import headlines, in_threes
from loko_testbed.reproduce.plots import rendering
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.report_sources import (
    ResultSource,
    assumed,
    in_papers_order,
    open_points,
    sources,
    stated_sentences,
)
from loko_testbed.reproduce.result import FigureResult, read_results
from loko_testbed.reproduce.verdicts import (
    KINDS,
    LEVELS,
    counts,
    evidence_ladder,
    guarantees,
    sentences,
    stated_with,
)
from loko_testbed.simulation.senders import SenderSettings, sentence
from loko_testbed.tasks.files import write_atomically

REPORT = "report.html"
_NOTHING_DRAWN: Final[Mapping[str, pictures.RenderedPictures]] = MappingProxyType({})
_NO_SOURCES: Final[Mapping[str, ResultSource]] = MappingProxyType({})


def write_report(directory: Path, drawn: Mapping[str, pictures.RenderedPictures] = _NOTHING_DRAWN) -> Path:
    """Write `DIRECTORY/report.html` from the results there. Raises `InputError`, one line.

    `drawn` has the pictures that exist already, by figure; the others are drawn here.
    """
    if not directory.is_dir():
        raise InputError(f"{directory}: no such folder; give the --out folder of a 'loko evaluate'")
    results = read_results(directory)
    if not results:
        raise InputError(f"{directory}: holds no results; run 'loko evaluate --out {directory}' first")
    path = directory / REPORT
    write_atomically(path, render(results, drawn, sources(directory, results)).encode())
    return path


def render(
    results: list[FigureResult],
    drawn: Mapping[str, pictures.RenderedPictures] = _NOTHING_DRAWN,
    made: Mapping[str, ResultSource] = _NO_SOURCES,
) -> str:
    """Return the report as HTML; the same arguments give the same text.

    For `drawn` see `write_report`. `made` has, by figure, its files and when and where it was made.
    """
    results = sorted(results, key=lambda result: in_papers_order(result.paper, result.figure))
    judged = list(guarantees(results))
    counted = sentences(results)
    known = stated_sentences(results)
    return _template().render(
        results=results,
        titles={result.name: result.title for result in results},
        pictures={result.name: _picture(result, drawn.get(result.name)) for result in results},
        specifications={result.name: _specification(result, drawn.get(result.name)) for result in results},
        vega_embed=Markup(rendering.vega_embed()),  # noqa: S704 - a library, made fit for a page
        senders=sentence(filter(None, map(_senders, results))),
        kinds=KINDS,
        counts=lambda result: counts(sentences([result])),
        levels=LEVELS,
        counts_of_all=counts(counted),
        ladder=evidence_ladder(counted),
        of_all=evidence_ladder([replace(sentence, paper="") for sentence in counted]).get("", {}),
        headlines=headlines(results, counted),
        stated=known,
        known={(statement.paper, statement.fact.reference) for statement in known},
        stated_with=partial(stated_with, counted),
        ours=[(result, claim) for result, claim in judged if claim.ours],
        theirs=[(result, claim) for result, claim in judged if not claim.ours],
        made=made,
        nothing_made=ResultSource(),
        fallen=[(result, claim) for result in results for claim in result.broken_claims],
        assumed=assumed(results),
        not_replayed=sorted(
            not_replayed({result.name for result in results}),
            key=lambda figure: in_papers_order(figure.paper, figure.figure),
        ),
        open_points=open_points(results),
        coarse_errors=sum(result.coarse_errors for result in results),
    )


@cache
def _template() -> Template:
    """Return the report's template; compiling it takes longer than a short report."""
    environment = html_templates("loko_testbed.reproduce")
    environment.filters.update(
        symbols=_symbols,
        anchor=_anchor,
        title=_title,
        percent=_percent,
        packets=in_threes,
        paper_title=_paper_title,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template("report.html.j2")


def _senders(result: FigureResult) -> dict[str, float]:
    """Return the numbers that describe a figure's senders; empty if it has none."""
    assumed = result.provenance.assumptions
    names = SenderSettings.model_fields
    return {name: assumed[name] for name in names} if names.keys() <= assumed.keys() else {}


def _picture(result: FigureResult, drawn: pictures.RenderedPictures | None) -> Markup:
    """Return the picture as an inline SVG element."""
    drawn_svg = drawn.uncaptioned_svg if drawn else pictures.svg(result, captioned=False)
    return rendering.inline_svg(drawn_svg, prefix=f"{_anchor(result.name)}-")


def _specification(result: FigureResult, drawn: pictures.RenderedPictures | None) -> Spec:
    """Return the specification of the interactive picture."""
    return drawn.specification if drawn else pictures.specification(result, captioned=False)


def _symbols(text: str) -> Markup:
    """Return HTML in which m_r and m_b have subscripts."""
    return Markup(re.sub(r"m_([rb])", r"<i>m</i><sub>\1</sub>", str(Markup.escape(text))))  # noqa: S704


@pass_context
def _title(context: Context, name: str) -> str:
    """Return a figure's name in full: "Figure 17a", "tssdn, Figure 4d", or its title if it has no number.

    The page's `titles` are those of the figures by full name.
    """
    *paper, figure = short_name(name).split("/")
    if match := re.fullmatch(r"(fig|table|sec)(\d+[a-z]?)", figure):
        names = {"fig": "Figure", "table": "Table", "sec": "Section"}
        return ", ".join([*paper, f"{names[match[1]]} {match[2]}"])
    titles = context["titles"]
    return (
        titles[name].replace("not the paper's: ", "").replace("not a paper's: ", "")
        if name in titles
        else name
    )


def _paper_title(paper: str) -> str:
    """Return a paper's title, or its name if it has no file of facts."""
    return paper_title(paper) if paper in papers() else paper


def _anchor(name: str) -> str:
    """Return the figure's identifier within the page."""
    return short_name(name).replace("/", "-")


def _percent(share: float) -> str:
    return "0" if share == 0 else f"{100 * share:.3g} %"
