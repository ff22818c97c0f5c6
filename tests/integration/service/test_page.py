"""The page of `loko serve` in a real browser."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import pytest
from browser import Page, browser, browser_or_skip
from plants import meshed, plant_of, rings_at_rings
from scripted_service import ScriptedService, scripted
from selenium.webdriver import Chrome, Keys
from served_lab import ServedLab, made

from loko.document import LABS
from loko.topology.lab import Lab, load_lab
from loko.topology.requests import load_requests


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    browser_or_skip()
    with ServedLab(tmp_path_factory.mktemp("page")) as lab:
        yield lab


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(served: ServedLab, chrome: Chrome) -> Iterator[Page]:
    yield Page(chrome, served.address)
    served.release_all()


def release(page: Page, flow_id: str) -> None:
    """Press the flow's button and confirm."""
    page.one(f"{page.flow(flow_id)} .quiet").click()
    page.one("#sure button[value=release]").click()


def test_it_loads_from_the_service_alone_without_a_complaint(page: Page, served: ServedLab) -> None:
    page.wait(lambda: page.text("#health") == "every switch as it should be", "a healthy lab")
    assert page.text("h1") == "Two Zodiac FX with two hosts each (Loko, fig. 16)"
    assert page.texts("#topology .switch .name") == ["s1", "s2"]
    assert page.texts("#topology .host text") == ["H1", "H2", "H3", "H4"]
    assert len(page.all("#topology .cables > *")) == 5
    assert page.texts("#switch-list [data-switch=s1] .bars dt") == ["rate", "burst", "entries"]
    assert page.text("#no-flows") == "No flows yet: ask for one."
    assert page.complaints() == []
    loaded = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded
    assert [address for address in loaded if not address.startswith(served.address)] == []
    policy = served.client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert served.client.get("/page/nothing.js").status_code == 404
    assert served.client.get("/page/..%2fpage.py").status_code == 404


def test_docs_show_the_interface_out_of_the_service_alone(chrome: Chrome, served: ServedLab) -> None:
    docs = Page(chrome, f"{served.address}/docs", shows=".opblock")
    paths = served.client.get("/openapi.json").json()["paths"]
    assert len(docs.all(".opblock")) == sum(map(len, paths.values()))
    assert docs.text(".title").startswith("Loko")
    docs.one(".opblock-post .opblock-summary-control").click()
    docs.wait(lambda: "udp_source" in docs.text(".opblock-post .opblock-body"), "the form of a request")
    loaded = docs.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert f"{served.address}/openapi.json" in loaded
    assert [address for address in loaded if not address.startswith((served.address, "data:"))] == []
    assert docs.complaints() == []


def test_admitted_from_the_form_and_released(page: Page, served: ServedLab) -> None:
    page.fill(source="H1", destination="H3", rate=100, burst=612, id="video")
    page.submit()
    page.wait(lambda: page.all(page.flow("video")), "the flow")
    page.wait(lambda: "installed" in page.text(page.flow("video")), "its installation")
    guarantee_ns = served.flows()[0]["guarantee_ns"]
    assert page.text(f"{page.flow('video')} .guarantee strong") == f"{guarantee_ns / 1e6:.2f} ms"
    assert "H1 › s1 › s2 › H3" in page.text(page.flow("video"))
    assert "video is admitted" in page.text("#answer")
    page.wait(lambda: page.used("s1", "burst") > 20, "the bar to grow")
    assert page.used("s2", "entries") == round(100 / 17)
    assert page.text("#topology .switch[data-name=s1] .state") == f"{page.used('s1', 'burst')} %"
    release(page, "video")
    page.wait(lambda: not page.all(page.flow("video")), "its release")
    page.wait(lambda: page.used("s1", "burst") == 0, "the bar to shrink")
    assert "flow video is removed" in page.texts("#log li")[0]
    before = served.client.get("/v1/flows").json()
    page.one("#answer [aria-label='Undo the release of video']").click()
    page.wait(lambda: "video is again admitted" in page.text("#answer"), "the release to be undone")
    assert before["flows"] == []
    [again] = served.flows()
    assert (again["guarantee_ns"], again["burst_bytes"]) == (guarantee_ns, 612)


def test_the_margin_of_the_flows_of_now_is_shown(page: Page, served: ServedLab) -> None:
    """It is asked for again when the flows change, and once released flows no longer count."""
    assert not page.one("#margin").is_displayed()

    def is_told() -> bool:
        margin = served.client.get("/v1/margin").json()
        if margin["slower_ppm"] is None:  # released flows still count
            return False
        return page.text("#margin") == f"Slower switches: {margin['text']}."

    for flow_id in ("first", "second"):
        page.fill(source="H1", destination="H3", rate=100, burst=306, id=flow_id)
        page.submit()
        page.wait(is_told, f"the margin with {flow_id}")
        assert "every switch may take" in page.text("#margin")
    with_both = page.text("#margin")
    release(page, "first")
    page.wait(lambda: is_told() and page.text("#margin") != with_both, "the margin without it")
    release(page, "second")
    page.wait(lambda: not page.one("#margin").is_displayed(), "no margin without flows")


def test_what_if_says_what_a_flow_would_get_and_changes_nothing(page: Page, served: ServedLab) -> None:
    page.fill(source="H1", destination="H3", rate=100, burst=612, id="video")
    page.one("#what-if").click()
    page.wait(lambda: "video would be admitted" in page.text("#answer"), "the answer")
    assert "by s1 › s2. Nothing is reserved." in page.text("#answer")
    shares = re.findall(r"(s\d): burst 0 % → (\d+) %", page.text("#answer"))
    assert page.all("#topology .path.tried")
    assert served.flows() == []
    page.submit()
    page.wait(lambda: "video is admitted" in page.text("#answer"), "the flow")
    assert not page.all("#topology .path.tried")
    page.wait(
        lambda: [(name, str(page.used(name, "burst"))) for name in ("s1", "s2")] == shares, "what was said"
    )


def test_refusal_says_why_and_where(page: Page) -> None:
    page.fill(source="H1", destination="H3", rate=1000, burst=306)
    page.submit()
    page.wait(lambda: "is admitted" in page.text("#answer"), "the first")
    page.fill(rate=2000)
    page.submit()
    page.wait(lambda: "does not fit" in page.text("#answer"), "the refusal of the second")
    assert "s1 has not enough rate: 1 Mbit/s used + 2 Mbit/s asked for > 2.34 Mbit/s allowed." in page.text(
        "#answer"
    )
    advised = re.search(r"To make it fit: a rate of at most ([\d.]+) kbit/s\.", page.text("#answer"))
    assert advised is not None
    assert [element.get_attribute("data-name") for element in page.all("#topology .limiting")] == ["s1"]
    assert len(page.all("#flow-list > li")) == 1
    page.wait(lambda: "is refused: rate at s1: 1 used" in page.texts("#log li")[0], "the refusal to be noted")
    page.chrome.refresh()
    page.wait(
        lambda: "is refused: rate at s1" in page.text("#log"), "what happened before the page was loaded"
    )
    page.fill(source="H1", destination="H3", burst=306, rate=advised[1])
    page.submit()
    page.wait(lambda: "is admitted" in page.text("#answer"), "what was advised to be admitted")


def test_a_deadline_that_the_page_advises_is_kept(page: Page) -> None:
    page.fill(source="H1", destination="H3", rate=100, burst=306, deadline=1)
    page.submit()
    page.wait(lambda: "does not fit" in page.text("#answer"), "the refusal")
    advised = re.search(r"To make it fit: a deadline of at least ([\d.]+) ms\.", page.text("#answer"))
    assert advised is not None
    page.fill(deadline=advised[1])
    page.submit()
    page.wait(lambda: "is admitted" in page.text("#answer"), "what was advised to be admitted")


def test_switch_that_goes_and_comes_back_is_shown(page: Page, served: ServedLab) -> None:
    served.post(1)
    page.wait(lambda: page.all(page.flow("f1")), "the flow")
    served.switch_off()
    page.wait(
        lambda: page.text("#health") == "2 of 2 switches away, 1 promise broken", "the switches to be away"
    )
    assert len(page.all("#topology .switch.away")) == 2
    assert "away" in page.text("#switch-list [data-switch=s1] .badge")
    badge = f"{page.flow('f1')} .badge"  # names the switches in the order in which they went
    page.wait(lambda: page.text(badge) in {"broken at s1, s2", "broken at s2, s1"}, "the flow to be broken")
    served.switch_on()
    page.wait(lambda: page.text("#health") == "every switch as it should be", "the switches")
    page.wait(lambda: "installed" in page.text(f"{page.flow('f1')} .badge"), "the flow")
    assert page.all("#topology .switch.away") == []


def test_application_that_ends_and_comes_back_is_shown(page: Page, served: ServedLab) -> None:
    served.post(1)
    page.wait(lambda: page.all(page.flow("f1")), "the flow")
    served.application().kill()
    page.wait(
        lambda: any("OpenFlow application has ended" in text for text in page.texts("#log li")), "a note"
    )
    page.wait(lambda: page.text("#health") == "every switch as it should be", "the switches")
    page.wait(lambda: "installed" in page.text(f"{page.flow('f1')} .badge"), "the flow")
    assert not page.one("#banner").is_displayed()


def test_service_that_is_killed_and_comes_back_is_shown(page: Page, served: ServedLab) -> None:
    served.post(1)
    page.wait(lambda: page.all(page.flow("f1")), "the flow")
    served.wait_noted("f1", "is installed")
    served.kill()
    page.wait(lambda: "does not answer" in page.text("#banner"), "the banner")
    served.start()
    served.wait_healthy()
    page.wait(lambda: not page.one("#banner").is_displayed(), "the banner to go")
    numbers = [note["number"] for note in served.client.get("/v1/notes").json()["notes"]]
    assert numbers == sorted(set(numbers))
    page.chrome.refresh()
    page.wait(
        lambda: "flow f1 is installed" in page.text("#log"), "what happened before the service was killed"
    )
    page.wait(lambda: "installed" in page.text(f"{page.flow('f1')} .badge"), "the flow")


def test_keyboard_alone_admits_follows_and_releases(page: Page, chrome: Chrome) -> None:
    def press(*keys: str) -> None:
        for key in keys:
            chrome.switch_to.active_element.send_keys(key)

    def focused() -> str:
        return str(
            page.run("const e = document.activeElement; return e.name || e.dataset.name || e.textContent")
        )

    def tab_to(name: str) -> None:
        for _ in range(60):
            if focused() == name:
                return
            press(Keys.TAB)
        raise AssertionError(f"no way to {name} by the tabulator")

    tab_to("s1")
    press(Keys.ENTER)
    page.wait(lambda: page.all("#topology .switch.chosen"), "the switch to be chosen")
    tab_to("rate")
    press(Keys.ENTER)
    page.wait(lambda: page.all(page.flow("H1-H3")), "the flow")
    tab_to("H1-H3")
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press(Keys.ENTER)
    page.wait(lambda: "H1-H3: H1 › s1 › s2 › H3" in page.text("#chosen"), "the path")
    assert page.one("#topology .path").get_attribute("points")
    tab_to("Release")
    press(Keys.ENTER)
    assert focused() == "Keep it"
    tab_to("Release")
    press(Keys.ENTER)
    page.wait(lambda: not page.all(page.flow("H1-H3")), "its release")


CONTRASTS = """
const light = (colour) => {
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255);
  const [r, g, b] = parts.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  const colour = getComputedStyle(node).backgroundColor;
  return colour.startsWith("rgba") && colour.endsWith(", 0)") ? ground(node.parentElement) : colour;
};
const poor = [];
const texts = "h1, h2, h3, p, dt, dd, label, span, a, button, summary, li, time";
for (const node of document.querySelectorAll(texts)) {
  if (!node.textContent.trim() || !node.checkVisibility() || node.className === "skip") continue;
  const pair = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
  const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
  if (contrast < 4.5) poor.push([node.outerHTML.slice(0, 80), contrast]);
}
return poor;
"""


def test_every_control_has_a_name_and_text_can_be_read_in_light_and_dark(
    page: Page, chrome: Chrome, served: ServedLab
) -> None:
    served.post(1)
    page.wait(lambda: page.all(page.flow("f1")), "the flow")
    page.fill(rate=1_000_000)
    page.submit()
    page.wait(lambda: "does not fit" in page.text("#answer"), "a refusal")
    for control in page.all("input, select, button, a, [role=button], [role=meter], [role=img]"):
        if control.is_displayed():
            assert control.accessible_name, control.get_attribute("outerHTML")
    for scheme, colour in (("light", "rgb(243, 245, 248)"), ("dark", "rgb(16, 21, 28)")):
        seen(chrome, 1280, scheme)
        assert page.run("return getComputedStyle(document.body).backgroundColor") == colour
        assert page.run(CONTRASTS) == []
    seen(chrome, 1280, "")


WIDER_THAN_THEIR_ROOM = """
return [...document.querySelectorAll("html, body, body :not(svg *)")]
  .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth)
  .filter((one) => getComputedStyle(one).overflowX !== "hidden")
  .map((one) => `${one.tagName}#${one.id} ${one.scrollWidth} > ${one.clientWidth}`);
"""
SMALLEST_TEXT = """
const texts = [...document.querySelectorAll("#topology text")].filter((one) => one.textContent);
return Math.min(...texts.map((one) => one.getBoundingClientRect().height));
"""
OUTSIDE_THE_PICTURE = """
const picture = document.querySelector("#topology svg").getBoundingClientRect();
return [...document.querySelectorAll("#topology text")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && (box.left < picture.left || box.right > picture.right || box.top < picture.top);
}).map((one) => one.textContent);
"""


def fits_a_phone(page: Page, flow_id: str, width: int) -> None:
    page.wait(lambda: page.all(page.flow(flow_id)), "the flow")
    assert page.run("return window.innerWidth") == width
    assert page.run(WIDER_THAN_THEIR_ROOM) == []
    assert page.run(SMALLEST_TEXT) > 10
    assert page.run(OUTSIDE_THE_PICTURE) == []
    page.one(f"{page.flow(flow_id)} .pick").click()
    page.wait(lambda: page.one("#topology .path").get_attribute("points"), "its path")
    assert overlaps(page) == []


@pytest.mark.parametrize(("width", "to"), [(360, "H4"), (390, "H3")])
def test_phone_needs_no_sideways_scrolling(width: int, to: str, chrome: Chrome, served: ServedLab) -> None:
    seen(chrome, width, "")
    assert served.post(1, source="H1", destination=to).status_code == 201
    fits_a_phone(Page(chrome, served.address), "f1", width)
    served.release_all()
    seen(chrome, 1280, "")


EVIL = "<img src=x onerror=document.title='broken'>"


def test_names_are_never_read_as_markup(chrome: Chrome, tmp_path: Path) -> None:
    text = (LABS / "two-switch" / "lab.yml").read_text()
    text = text.replace("title: Two", f'title: "{EVIL}" # Two').replace("H1", f'"{EVIL}"', 1)
    text = text.replace("{a: H1,", f'{{a: "{EVIL}",')
    (tmp_path / "lab.yml").write_text(text)
    with ServedLab(tmp_path, lab=str(tmp_path / "lab.yml")) as lab:
        page = Page(chrome, lab.address)
        assert page.text("h1") == EVIL
        assert page.texts("#topology .host title")[0].startswith(EVIL)
        assert page.texts("#topology .host text")[0].startswith("<img src=")
        page.fill(id=EVIL)
        page.submit()
        page.wait(lambda: EVIL in page.text("#answer"), "the refusal of such a name")
        page.fill(id="good")
        page.submit()
        page.wait(lambda: page.all(page.flow("good")), "the flow of such a host")
        assert EVIL in page.text(page.flow("good"))
        assert page.all("img") == []
        assert "broken" not in chrome.title


OVERLAPPING_TEXTS = """
const texts = [...document.querySelectorAll("#topology text")].filter((one) => one.textContent);
const boxes = texts.map((one) => one.getBoundingClientRect());
return texts.flatMap((one, index) => texts.slice(0, index).filter((_, other) => {
  const [a, b] = [boxes[index], boxes[other]];
  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
}).map((other) => `${one.textContent} over ${other.textContent}`));
"""
CITIES = {node: f"Frankfurt am Main, exchange {node}" for node in range(20)}
PLANTS: dict[str, Callable[[Path], Lab]] = {
    "rings at rings": lambda folder: plant_of(folder, rings_at_rings(), (4, 4, 5, 4, 4, 4, 5)),
    "tree": lambda folder: plant_of(folder, nx.full_rary_tree(3, 40), (2, 1)),
    "meshed, long names": lambda folder: plant_of(folder, meshed(), (2, 1), CITIES),
    "line": lambda folder: plant_of(folder, nx.path_graph(20), (3,)),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_no_text_lies_over_another_at_plant_size(plant: str, chrome: Chrome, tmp_path: Path) -> None:
    lab = PLANTS[plant](tmp_path)
    with scripted(ScriptedService(lab, 40)) as address:
        for width in (390, 1280):
            seen(chrome, width, "light")
            page = Page(chrome, address, shows="#flow-list .flow")
            for hosts in (0, len(lab.hosts)):
                assert len(page.all("#topology .host")) == hosts
                assert page.run(OVERLAPPING_TEXTS) == []
                assert page.run(SMALLEST_TEXT) > 10
                assert page.run(OUTSIDE_THE_PICTURE) == []
                assert page.run(WIDER_THAN_THEIR_ROOM) == []
                assert overlaps(page) == []
                page.one("#unfold").click()
            for scheme in ("light", "dark"):
                seen(chrome, width, scheme)
                assert page.run(CONTRASTS) == []
            assert page.complaints() == []
    seen(chrome, 1280, "")


def seen(chrome: Chrome, width: int, scheme: str) -> None:
    """Set the width of the screen and whether it is light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_more_switches_than_texts_have_room_are_drawn_without(chrome: Chrome, tmp_path: Path) -> None:
    lab = plant_of(tmp_path, nx.cycle_graph(130), (1,))
    with scripted(ScriptedService(lab, 40)) as address:
        page = Page(chrome, address, shows="#flow-list .flow")
        assert overlaps(page) == []
        assert page.all("#topology text") == []
        assert not page.one("#unfold").is_displayed()
        assert page.texts("#topology .switch title")[1].startswith("s2 (plant-device): connected")
        assert page.complaints() == []


def test_hosts_are_unfolded_and_switches_visited_by_keyboard(chrome: Chrome, tmp_path: Path) -> None:
    lab = PLANTS["rings at rings"](tmp_path)
    with scripted(ScriptedService(lab, 40)) as address:
        page = Page(chrome, address, shows="#flow-list .flow")

        def press(key: str) -> str:
            chrome.switch_to.active_element.send_keys(key)
            return str(page.run("return document.activeElement.getAttribute('aria-label')"))

        assert len(page.all("#topology [tabindex='0']")) == 2, (
            "the tabulator stops at one switch and its hosts"
        )
        page.run("document.querySelector('#topology .switch').focus()")
        assert press(Keys.TAB) == "4 hosts at s1"
        assert press(Keys.ENTER) == "4 hosts at s1", "it keeps the focus"
        assert page.one("#topology .pill[data-at=s1]").get_attribute("aria-expanded") == "true"
        assert page.texts("#topology .host text") == ["h1-1", "h1-2", "h1-3", "h1-4"]
        assert press(" ").startswith("4 hosts")
        assert page.all("#topology .host") == []
        at = page.run(
            "return [...document.querySelectorAll('#topology .switch')].map((one) => one.dataset.name)"
        )
        reached, waiting = {"s1"}, ["s1"]
        while waiting:
            here = waiting.pop()
            for key in (Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_RIGHT):
                page.run(
                    "document.querySelector(`#topology .switch[data-name=${arguments[0]}]`).focus()", here
                )
                press(key)
                there = str(page.run("return document.activeElement.dataset.name"))
                if there not in reached:
                    reached.add(there)
                    waiting.append(there)
        assert reached == set(at)


def test_the_path_of_a_flow_runs_over_its_switches(chrome: Chrome, tmp_path: Path) -> None:
    service = ScriptedService(PLANTS["rings at rings"](tmp_path), 40)
    flow = max(service.flows, key=lambda flow: len(flow["path"]))
    with scripted(service) as address:
        page = Page(chrome, address, shows="#flow-list .flow")
        page.run(
            "const q = document.querySelector('[name=query]'); q.value = arguments[0];"
            "q.dispatchEvent(new Event('input'))",
            f"{flow['id']} {flow['udp_source']}",
        )
        page.one(f"{page.flow(flow['id'])} .pick").click()
        for _ in ("folded", "unfolded"):
            page.wait(lambda: page.one("#topology .path").get_attribute("points"), "its path")
            points = str(page.one("#topology .path").get_attribute("points")).split()
            places = [
                re.findall(
                    r"[\d.]+", str(page.one(f".switch[data-name={hop['switch']}]").get_attribute("transform"))
                )
                for hop in flow["path"]
            ]
            over = [",".join(place) for place in places]
            assert [point for point in dict.fromkeys(points) if point in over] == over
            assert {one.get_attribute("data-name") for one in page.all(".switch.passed")} == {
                hop["switch"] for hop in flow["path"]
            }
            page.one("#unfold").click()


def overlaps(page: Page) -> list[tuple[int, int]]:
    """Return the pairs of switches whose drawings overlap."""
    boxes = page.run(
        "return [...document.querySelectorAll('#topology .switch .body')]"
        ".map((one) => one.getBoundingClientRect())"
        ".map(({ x, y, width, height }) => [x + width / 2, y + height / 2, width])"
    )
    return [
        (index, other)
        for index, (ax, ay, width) in enumerate(boxes)
        for other, (bx, by, _) in enumerate(boxes[:index])
        if ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5 <= width
    ]


def test_a_slot_is_given_from_the_form(chrome: Chrome, tmp_path: Path) -> None:
    with ServedLab(tmp_path, "--schedule", str(made(tmp_path))) as lab:
        page = Page(chrome, lab.address)
        page.wait(lambda: page.all(page.flow("f1")), "the flows of the schedule")
        assert "4 slots of 2.82 ms in 11.3 ms" in page.text("#options")
        page.one(f"{page.flow('f1')} .pick").click()
        page.wait(
            lambda: "slot 0, at 0.000 ms of a base period, every 11.3 ms" in page.text("#detail"), "its slot"
        )
        assert page.texts("#switch-list [data-switch=s1] .bars dt") == ["slots", "entries"]
        assert page.all("#ask [name=rate]:enabled, #ask [name=burst]:enabled") == []
        for name in ("x1", "x2", "x3", "x4"):  # H1 has three free slots
            page.fill(source="H1", destination="H3", id=name)
            page.submit()
            text = "x4 does not fit" if name == "x4" else f"{name} has slot"
            page.wait(lambda text=text: text in page.text("#answer"), text)
        assert "s1 has not enough slots" in page.text("#answer")
        assert "release a flow on its path" in page.text("#answer")
        release(page, "x1")
        page.wait(lambda: not page.all(page.flow("x1")), "its release")
        page.fill(source="H1", destination="H3", id="x5")
        page.one("#what-if").click()
        page.wait(lambda: "x5 would get slot" in page.text("#answer"), "the slot that it would get")
        assert page.complaints() == []


def test_a_token_is_asked_for_and_measured_delays_appear_beside_the_guarantee(
    chrome: Chrome, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-of-enough-length\n")
    options = ("--emulate", "--traffic", "--token-file", str(tmp_path / "token"))
    with ServedLab(tmp_path, *options, has_boards=False) as lab:
        page = Page(chrome, lab.address)
        page.fill(source="H1", destination="H3", rate=200, burst=612, id="video")
        page.submit()
        page.wait(lambda: "A token is needed" in page.text("#answer"), "the question for the token")
        page.fill(token="a-token-of-enough-length")
        page.submit()
        page.wait(lambda: "is admitted" in page.text("#answer"), "the admission")
        page.wait(lambda: page.all(f"{page.flow('video')} .bars rect"), "measured delays")
        page.wait(lambda: lab.delays()["video"]["received"] > 50, "more of them")
        measured = lab.delays()["video"]
        assert measured["lost"] == measured["late"] == 0
        assert 0 < measured["min_ns"] <= measured["p50_ns"] <= measured["p99_ns"]
        assert measured["max_ns"] <= measured["guarantee_ns"] == lab.flows()[0]["guarantee_ns"]
        page.one(f"{page.flow('video')} .pick").click()
        page.wait(lambda: page.all("#detail .numbers"), "its numbers")
        assert page.texts("#detail .numbers dt") == ["min", "p50", "p99", "max", "lost", "late", "received"]
        assert page.texts("#detail .numbers dd")[4:6] == ["0", "0"]
        page.wait(lambda: len(page.all("#detail .band rect")) > 1, "its delays over time")
        spans = lab.client.get("/v1/flows/video/delays").json()["spans"]
        assert sum(span["received"] for span in spans) >= measured["received"]
        assert max(span["max_ns"] for span in spans if span["received"]) <= measured["guarantee_ns"]
        label = page.one(f"{page.flow('video')} .strip svg").get_attribute("aria-label")
        assert "0 lost, 0 late of" in str(label)


@pytest.fixture(scope="module")
def thousand() -> Iterator[tuple[ScriptedService, str]]:
    """A scripted service with a thousand flows on the ring."""
    browser_or_skip()
    service = ScriptedService(load_lab("ring"), 1000)
    with scripted(service) as address:
        yield service, address


@pytest.fixture
def crowd(thousand: tuple[ScriptedService, str]) -> Iterator[tuple[ScriptedService, str]]:
    """The service, reset after each test."""
    service, _ = thousand
    flows, delays = list(service.flows), dict(service.delays)
    yield thousand
    service.flows, service.delays = flows, delays
    service.notes.clear()
    service.asked.clear()


@pytest.fixture
def crowded(crowd: tuple[ScriptedService, str], chrome: Chrome) -> Page:
    return Page(chrome, crowd[1], shows="#flow-list .flow")


def shown(page: Page) -> list[str]:
    """Return the flows that have elements on the page, in the order in which they are listed."""
    return list(
        page.run(
            "return [...document.querySelectorAll('#flow-list .flow:not([hidden])')]"
            ".sort((a, b) => a.ariaPosInSet - b.ariaPosInSet).map((one) => one.dataset.flow)"
        )
    )


def pick(page: Page, name: str, value: str) -> None:
    page.one(f"#flow-tools [name={name}] option[value={value}]").click()


def test_of_a_thousand_flows_few_are_drawn(crowded: Page) -> None:
    assert crowded.text("#flows-title") == "Flows (1000)"
    assert len(crowded.all("#flow-list > li")) < 30
    assert crowded.run("return document.documentElement.scrollHeight") < 3000
    crowded.run("document.querySelector('#flow-scroll').scrollTop = 1e9")
    crowded.wait(lambda: shown(crowded)[-1] == "flow-999", "the last flow")
    assert len(crowded.all("#flow-list > li")) < 40
    assert crowded.complaints() == []


def test_ring_of_31_is_drawn_round(crowded: Page) -> None:
    assert len(crowded.all("#topology .switch")) == 31
    assert crowded.all("#topology .host") == []
    assert crowded.texts("#topology .pill text") == ["2"] * 31
    crowded.one("#unfold").click()
    assert len(crowded.all("#topology .host")) == 62
    assert overlaps(crowded) == []


def test_ring_of_31_fits_a_phone(chrome: Chrome, crowd: tuple[ScriptedService, str]) -> None:
    service, address = crowd
    seen(chrome, 390, "")
    service.flows = service.flows[248:249]
    assert len(service.flows[0]["path"]) == 9
    fits_a_phone(Page(chrome, address), "flow-248", 390)
    seen(chrome, 1280, "")


def test_flows_are_searched_sorted_grouped_and_collapsed(
    crowded: Page, crowd: tuple[ScriptedService, str]
) -> None:
    crowded.one("#flow-tools [name=query]").send_keys("h7a 5012")
    crowded.wait(lambda: shown(crowded) == ["flow-12"], "the flow that is searched for")
    assert crowded.text("#flows-title") == "Flows (1 of 1000)"
    crowded.one("#flow-tools [name=query]").clear()
    crowded.one("#flow-tools [name=query]").send_keys("nothing such")
    crowded.wait(lambda: crowded.text("#no-flows") == "None of the flows is such.", "that there is none")
    crowded.run(
        "const q = document.querySelector('[name=query]'); q.value = ''; q.dispatchEvent(new Event('input'))"
    )
    pick(crowded, "order", "used")
    delays = crowd[0].delays
    first = shown(crowded)[0]
    assert delays[first]["max_ns"] / delays[first]["guarantee_ns"] == max(
        delay["max_ns"] / delay["guarantee_ns"] for delay in delays.values()
    )
    pick(crowded, "group", "switch")
    crowded.wait(lambda: crowded.texts("#flow-list .group .pick")[:1] == ["s1"], "groups")
    crowded.one("#fold").click()
    crowded.wait(lambda: shown(crowded) == [], "all groups to be collapsed")
    through = sum(any(hop["switch"] == "s2" for hop in flow["path"]) for flow in crowd[0].flows)
    assert f"s2{through} flows" in crowded.texts("#flow-list .group h3")
    crowded.one("#flow-list .group:first-child .pick, #flow-list .group .pick").click()
    crowded.wait(lambda: shown(crowded), "one group to be open")


def test_choosing_a_switch_lists_its_flows_alone(crowded: Page, crowd: tuple[ScriptedService, str]) -> None:
    passing = [flow for flow in crowd[0].flows if any(hop["switch"] == "s9" for hop in flow["path"])]
    crowded.one("#topology .switch[data-name=s9] .name").click()
    crowded.wait(lambda: crowded.text("#flows-title") == f"Flows ({len(passing)} of 1000)", "fewer flows")
    crowded.one(f"{crowded.flow(passing[0]['id'])} .pick").click()
    crowded.wait(lambda: crowded.text("#detail h3") == passing[0]["id"], "the flow beside the list")
    nodes = [passing[0]["source"], *(hop["switch"] for hop in passing[0]["path"]), passing[0]["destination"]]
    assert [text.split(" at most")[0] for text in crowded.texts("#detail .hops li")] == nodes
    assert crowded.text("#flows-title") == f"Flows ({len(passing)} of 1000)"
    crowded.one("#through").click()
    crowded.wait(lambda: crowded.text("#flows-title") == "Flows (1000)", "all flows")


def test_a_flow_is_asked_for_and_shown_in_its_class(
    crowded: Page, crowd: tuple[ScriptedService, str]
) -> None:
    crowded.one("#class-choice option[value='2']").click()
    crowded.one("#what-if").click()
    crowded.wait(lambda: "nothing" in crowded.text("#answer"), "the answer")
    assert crowd[0].asked[-1][2]["traffic_class"] == 2
    low = next(flow["id"] for flow in crowd[0].flows if flow["traffic_class"] == 2)
    crowded.one(f"{crowded.flow(low)} .pick").click()
    crowded.wait(lambda: "class 2, " in crowded.text("#detail"), "the class")


def test_focus_stays_in_the_list(crowded: Page, chrome: Chrome, crowd: tuple[ScriptedService, str]) -> None:
    service = crowd[0]

    def focused() -> str:
        return str(crowded.run("return document.activeElement.closest('[data-flow]')?.dataset.flow"))

    crowded.one(f"{crowded.flow('flow-0')} .pick").send_keys(Keys.END)
    assert focused() == "flow-999"
    chrome.switch_to.active_element.send_keys(Keys.ARROW_UP)
    assert focused() == "flow-998"
    crowded.run("document.querySelector('#flow-scroll').scrollTop = 0")
    crowded.wait(lambda: "flow-0" in shown(crowded), "the first flows")
    service.tell("switches", "flows", "delays")
    assert focused() == "flow-998", "also when it is out of sight"
    chrome.switch_to.active_element.send_keys(Keys.TAB, Keys.ENTER)
    crowded.one("#sure button[value=keep]").click()
    assert not [request for request in service.asked if request[0] == "DELETE"], "it asks before"
    crowded.one(f"{crowded.flow('flow-998')} .quiet").send_keys(Keys.ENTER)
    crowded.one("#sure button[value=release]").click()
    crowded.wait(lambda: crowded.text("#flows-title") == "Flows (999)", "its release")
    assert ("DELETE", "/v1/flows/flow-998", None) in service.asked
    assert focused() == "flow-999"


def test_what_is_listed_can_be_taken_away(crowded: Page, tmp_path: Path) -> None:
    crowded.run("""
        window.taken = [];
        URL.createObjectURL = (blob) => { blob.text().then((text) => window.taken.push(text)); return "#"; };
    """)
    crowded.one("#flow-tools [name=query]").send_keys("h7a")
    crowded.wait(lambda: "of" in crowded.text("#flows-title"), "fewer flows")
    for name in ("csv", "requests", "json"):
        crowded.one("#export summary").click()
        crowded.one(f"#export-{name}").click()
    crowded.wait(lambda: crowded.run("return window.taken.length") == 3, "three files")
    table, requests, everything = crowded.run("return window.taken")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows
    assert all("h7a" in (row["source"], row["destination"]) for row in rows)
    assert float(rows[0]["max_ns"]) < float(rows[0]["guarantee_ns"])
    (tmp_path / "requests.json").write_text(requests)
    asked = load_requests(tmp_path / "requests.json")
    assert [request.flow.id for request in asked] == [row["id"] for row in rows]
    assert [request.flow.traffic_class for request in asked] == [int(row["traffic_class"]) for row in rows]
    assert {request.flow.traffic_class for request in asked} == {1, 2}
    assert len(json.loads(everything)["flows"]) > len(rows)


TOUCHING = """
const boxes = [...document.querySelectorAll(
  "#flow-list .flow:not([hidden]) :is(.pick, .badge, p, .strip, button),"
  + "#detail :is(dt, dd, h3, .badge, p, button), .axis span"
)].filter((one) => one.checkVisibility());
const touching = [];
for (const [index, one] of boxes.entries()) {
  for (const other of boxes.slice(0, index)) {
    if (one.contains(other) || other.contains(one)) continue;
    if (one.closest(".flow, .detail") !== other.closest(".flow, .detail")) continue;
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 1) touching.push([one.outerHTML.slice(0, 60), other.outerHTML.slice(0, 60)]);
  }
}
return touching;
"""


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_numbers_do_not_touch(crowded: Page, chrome: Chrome, width: int) -> None:
    seen(chrome, width, "")
    try:
        crowded.one(f"{crowded.flow('flow-1')} .pick").click()
        crowded.wait(lambda: crowded.all("#detail .band rect"), "its delays over time")
        assert crowded.run(TOUCHING) == []
        assert crowded.run(WIDER_THAN_THEIR_ROOM) == []
    finally:
        seen(chrome, 1280, "")
