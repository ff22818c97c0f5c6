"""The guarantee sheet says what the plan says, and names the inputs."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfReader
from typer.testing import CliRunner

from loko.document import LABS, PROFILES
from loko_testbed.cli.main import app
from loko_testbed.cli.sheet_pdf import as_pdf

FLOWS = [
    {"id": "drive", "udp_source": 1, "rate": "700 kbit/s", "burst": "2 frames", "deadline": "5 ms"},
    {"id": "sly", "udp_source": 2, "rate": "333333.3 bit/s", "burst": "1 frame"},
    {"id": "large", "udp_source": 3, "rate": "9 Mbit/s", "burst": "40 frames"},
]


def plan(*words: object):
    return CliRunner().invoke(app, ["plan", *map(str, words)])


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    file = tmp_path / "flows.json"
    same = {"source": "H1", "destination": "H3", "udp_destination": 9, "frame": "306 bytes"}
    file.write_text(json.dumps([{**same, **own} for own in FLOWS]))
    return file


def rows(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr><td.*?</tr>", text)
    return [
        [html.unescape(re.sub(r"<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in rows
    ]


@pytest.mark.parametrize("scheme", ["loko", "packets"])
def test_every_flow_stands_there_as_the_plan_has_it(flows: Path, tmp_path: Path, scheme: str) -> None:
    sheet = tmp_path / "sheet.html"
    words = ("two-switch", flows, "--scheme", scheme)
    told = json.loads(plan(*words, "--json").stdout)
    assert plan(*words, "--sheet", sheet).exit_code == 1, "one does not fit"
    text = sheet.read_text(encoding="utf-8")
    by_flow = {row[0]: row for row in rows(text)}
    assert [refusal["flow"] for refusal in told["refused"]] == ["large"]
    assert by_flow["large"][-1].startswith(told["refused"][0]["quantity"])
    for accepted in told["accepted"]:
        row = by_flow[accepted["flow"]]
        assert "H1 → s1 → s2 → H3" in row
        assert f"{math.ceil(accepted['guarantee_ns'] / 1e3) / 1e3:.3f}" in row
    slack_ns = told["accepted"][0]["slack_ns"]
    assert by_flow["drive"][-2:] == ["5.000", f"{math.floor(slack_ns / 1e3) / 1e3:.3f}"]
    assert by_flow["sly"][3] == "333,333.3"
    assert html.escape(told["reserved"], quote=False).replace("'", "&#39;") in text
    assert "<b>" not in text


def test_inputs_are_named_with_their_checksums(flows: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.html"
    plan("two-switch", flows, "--sheet", sheet)
    sums = {
        row[0]: row[2]
        for row in rows(sheet.read_text(encoding="utf-8"))
        if row[0] in {"lab", "flows", "profile"}
    }
    files = {
        "lab": LABS / "two-switch" / "lab.yml",
        "flows": flows,
        "profile": PROFILES / "zodiac-fx.toml",
    }
    assert sums == {what: hashlib.sha256(file.read_bytes()).hexdigest() for what, file in files.items()}
    before = sheet.read_bytes()
    plan("two-switch", flows, "--sheet", sheet)
    assert sheet.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sheet", "out.doc"), "--sheet out.doc: is written as PDF or HTML; give a name such as out.pdf"),
        (("--sheet", "/nowhere/out.html"), "--sheet /nowhere/out.html: cannot be written: No such file"),
        (("--sheet", "out.html", "--scheme", "silo"), "ports do not keep what silo promises; give --scheme"),
        (
            ("--sheet", "out.html", "--scheme", "loko", "--scheme", "packets"),
            "--sheet: a sheet is for one scheme",
        ),
    ],
)
def test_no_sheet_is_written_of_what_cannot_be_promised(
    flows: Path, tmp_path, monkeypatch, words, says
) -> None:
    monkeypatch.chdir(tmp_path)
    result = plan("two-switch", flows, *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["flows.json"]


def letters(text: str) -> str:
    """Return a text as on paper, without spaces, because lines are broken elsewhere there."""
    return "".join(text.replace("→", "->").split())


def test_what_the_font_of_a_pdf_lacks_is_written_in_ascii() -> None:
    page = "<body><h1>Anlage Süd ±1</h1><p>von H1 → s1, 5 Ω &rarr; ж</p></body>"
    [sheet] = PdfReader(BytesIO(as_pdf(page, "Süd → Ω"))).pages
    assert sheet.extract_text().split("\n")[:2] == ["Anlage Süd ±1", "von H1 -> s1, 5 O -> zh"]


def test_a_pdf_has_the_words_of_the_page(flows: Path, tmp_path: Path) -> None:
    long = [f"{number}-{'an-id-of-many-letters' * 2}" for number in range(60)]
    asked = json.loads(flows.read_text()) + [
        {**json.loads(flows.read_text())[1], "id": name, "rate": "1 kbit/s", "udp_source": 100 + number}
        for number, name in enumerate(long)
    ]
    flows.write_text(json.dumps(asked))
    page, paper = tmp_path / "sheet.html", tmp_path / "sheet.pdf"
    for sheet in (page, paper):
        assert plan("two-switch", flows, "--sheet", sheet).exit_code == 1
    reader = PdfReader(paper)
    assert len(reader.pages) > 1
    said = letters("".join(sheet.extract_text() for sheet in reader.pages))
    cells = [cell for row in rows(page.read_text(encoding="utf-8")) for cell in row]
    assert len(cells) > 100
    assert [cell for cell in cells if letters(cell) not in said] == []
    paragraphs = re.findall(r"<(?:p|li|h1|h2)\b[^>]*>([^<]+)", page.read_text(encoding="utf-8"))
    assert [text for text in paragraphs if letters(html.unescape(text)) not in said] == []


def test_the_same_inputs_give_the_same_pdf(flows: Path, tmp_path: Path) -> None:
    sheets = [tmp_path / "one.pdf", tmp_path / "two.pdf"]
    for sheet in sheets:
        plan("two-switch", flows, "--sheet", sheet)
    assert sheets[0].read_bytes() == sheets[1].read_bytes()
