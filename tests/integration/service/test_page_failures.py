"""The page of an emulated service on a phone: a cable is pulled, a flow on backup, a switch rebooted."""

from __future__ import annotations

import re
from pathlib import Path

from browser import Page, browser
from selenium.webdriver.support.select import Select
from served_lab import ServedLab
from test_page import CONTRASTS, SMALLEST_TEXT, WIDER_THAN_THEIR_ROOM
from triangle import DIRECT, triangle


def test_the_page_causes_failures_and_shows_what_survives(tmp_path: Path) -> None:
    options = ("--survive", "cables=1", "--compare-s", "1", "--return", "by-call", "--emulate")
    lab = str(triangle(tmp_path).path)
    with (
        browser(width=390, height=844) as chrome,
        ServedLab(tmp_path, *options, lab=lab, has_boards=False) as served,
    ):
        assert served.post(1, destination="H2").status_code == 201
        page = Page(chrome, served.address)

        def badge(flow: str = "f1") -> str:
            return page.text(f"{page.flow(flow)} .badge")

        page.wait(lambda: badge() == "installed", "the flow")
        for field, value in (("source", "H1"), ("destination", "H2"), ("protection", "sent twice")):
            Select(page.one(f"#ask [name={field}]")).select_by_visible_text(value)
        page.one("#ask button[type=submit]").click()
        page.wait(lambda: len(served.flows()) == 2, "the second flow")
        (both,) = (flow["id"] for flow in served.flows() if flow["id"] != "f1")
        page.wait(lambda: badge(both) == "installed", "the flow that is sent twice")
        page.wait(lambda: page.text("#coverage") == "3 failures are covered, one at a time", "coverage")
        Select(page.one("#fault-cable")).select_by_visible_text(DIRECT)
        page.one("#fault-toggle").click()
        page.wait(lambda: badge() == "on backup", "the move")
        page.wait(lambda: page.text("#pulled") == f"Pulled out: {DIRECT}", "the cable")
        assert page.text("#coverage").startswith(f"Not covered until repaired: cable {DIRECT} has no link")
        page.one(f"{page.flow('f1')} .pick").click()
        page.wait(lambda: "its working path is s1 › s2" in page.text("#detail"), "its other path")
        page.wait(lambda: badge(both) == "on one path", "the fault of one path")
        page.one(f"{page.flow(both)} .pick").click()
        page.wait(lambda: f"On one path: cable {DIRECT} has no link" in page.text("#detail"), "the fault")
        assert "second copies from UDP port 65535 by s1 › s3 › s2" in page.text("#detail")
        assert f"{both}: H1 › s1 › s2 › H2 and H1 › s1 › s3 › s2 › H2, at most" in page.text("#chosen")
        assert switches_under_lines(page) == [["s1", "s2"], ["s1", "s3", "s2"]]
        assert len(page.all("#topology .switch.passed")) == 3
        assert page.run(WIDER_THAN_THEIR_ROOM) == []
        assert page.run(SMALLEST_TEXT) > 10
        assert page.run(CONTRASTS) == []
        assert page.text("#fault-toggle") == "Plug it in again"
        page.one("#fault-toggle").click()
        page.wait(lambda: page.text("#fault-toggle") == "Pull this cable", "the repair")
        page.wait(lambda: "cable" not in page.text("#coverage"), "the link")
        page.one("#return").click()
        page.wait(lambda: badge() == "installed", "the return")
        assert badge(both) == "installed"
        Select(page.one("#fault-switch")).select_by_visible_text("s3")
        page.one("#fault-reboot").click()
        page.wait(lambda: page.text("#fault-answer") == "s3 reboots", "the answer")
        page.wait(lambda: "away" in page.text("#health"), "the reboot")
        page.wait(lambda: page.text("#health") == "every switch as it should be", "the switch")
        assert page.complaints() == []


def switches_under_lines(page: Page) -> list[list[str]]:
    """Return the switches over which each line of the chosen flow's paths runs, in order."""
    at = {}
    for one in page.all("#topology .switch"):
        x, y = re.findall(r"[\d.]+", str(one.get_attribute("transform")))
        at[f"{x},{y}"] = str(one.get_attribute("data-name"))
    lines = [str(line.get_attribute("points")).split() for line in page.all("#topology polyline.path")]
    return [[at[point] for point in dict.fromkeys(points) if point in at] for points in lines]
