"""The report's pictures in a real browser: they show numbers, move and stretch, without network and eval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, browser, browser_or_skip
from sample_charts import PANELS, chart_result
from selenium.webdriver import ActionChains, Chrome

from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.report import render

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_SVG = ".picture svg"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    browser_or_skip()
    results = [
        chart_result(Chart(panels=[panel])).model_copy(update={"figure": f"fig{number}"})
        for number, panel in enumerate(PANELS)
    ]
    meta = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(results).replace("<head>", f"<head>{meta}"), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[1280, 390], ids=["desktop", "phone"])
def chrome(request: pytest.FixtureRequest) -> Iterator[Chrome]:
    with browser(width=request.param) as opened:
        yield opened


@pytest.fixture
def page(report: Path, chrome: Chrome) -> Page:
    return Page(chrome, report.as_uri(), shows=_SVG)


def live(page: Page, figure: str) -> str:
    """Point at a picture, and return its selector once it is live."""
    picture = f"#{figure} .picture"
    page.run("arguments[0].scrollIntoView()", page.one(f"#{figure}"))
    ActionChains(page.chrome).move_to_element_with_offset(page.one(picture), 0, 0).perform()
    page.wait(lambda: page.all(f"{picture}.live svg"), f"{figure} to be live")
    return picture


def test_every_kind_of_panel_comes_to_life_without_a_complaint(page: Page) -> None:
    assert len(page.all(_SVG)) == len(PANELS)
    assert page.one(".with-script").is_displayed()
    for number in range(len(PANELS)):
        live(page, f"fig{number}")
    assert len(page.all(".picture.live svg")) == len(PANELS)
    assert page.complaints() == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_a_mark_shows_its_numbers(page: Page) -> None:
    picture = live(page, "fig3")  # cells of a heatmap
    ActionChains(page.chrome).move_to_element(page.all(f"{picture} .mark-rect path")[1]).perform()
    page.wait(lambda: page.all("#vg-tooltip-element.visible"), "the numbers of a cell")
    shown = page.text("#vg-tooltip-element").split("\n")
    assert [line.split() for line in shown] == [["rate", "2"], ["burst", "10"], ["delay", "[ms]", "2"]]


def test_axes_stretch_under_the_wheel_and_a_double_click_brings_them_back(page: Page) -> None:
    picture = live(page, "fig1")  # curves
    labels = f"{picture} .role-axis-label text"
    before = sorted(page.texts(labels))
    middle = page.one(f"{picture} .concat_0_concat_0_group .background")
    page.run(
        "const box = arguments[0].getBoundingClientRect();"
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -300, ctrlKey: true, bubbles: true,"
        " clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}))",
        middle,
    )
    page.wait(lambda: sorted(page.texts(labels)) != before, "other labels of the axes")
    ActionChains(page.chrome).double_click(middle).perform()
    page.wait(lambda: sorted(page.texts(labels)) == before, "the first labels of the axes")
