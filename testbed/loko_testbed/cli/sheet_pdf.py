"""A guarantee sheet as PDF: the words of the HTML page, set on paper, so that both always say the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Final

from anyascii import anyascii
from fpdf import FPDF
from fpdf.enums import TableBordersLayout, WrapMode
from fpdf.fonts import FontFace

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
"""The date of every sheet: the same plan gives the same bytes."""
_FONT: Final = "helvetica"
"""One of the fonts that every PDF reader has; it has the characters of Latin-1."""
_MARGIN_MM: Final = 15
_TEXT_PT: Final = 9
_TABLE_PT: Final = 7
_HEADING_PT: Final = {"h1": 16, "h2": 11}
_LINE: Final = 1.35
"""Height of a line by that of its text."""
_PADDING_MM: Final = 0.8
_MM_PER_PT: Final = 25.4 / 72
_GREY: Final = (91, 99, 114)
_NUMBER: Final = "number"
"""Class of the cells that are set to the right."""
_BLOCKS: Final = frozenset({"h1", "h2", "p", "li"})


@dataclass(kw_only=True)
class _Block:
    """A heading, a paragraph, or an item of the list of conditions."""

    tag: str
    is_soft: bool = False
    text: str = ""


@dataclass
class _TableBlock:
    """Rows of cells; the first one is the heading."""

    rows: list[list[str]] = field(default_factory=list)
    numbers: list[bool] = field(default_factory=list)
    """Whether each column is one of numbers."""


class _NumberedPdf(FPDF):
    """Sheets of paper, numbered."""

    def footer(self) -> None:
        self.set_y(-_MARGIN_MM + _TABLE_PT * _MM_PER_PT)
        self.set_font(_FONT, "", _TABLE_PT)
        self.set_text_color(*_GREY)
        self.cell(0, _TABLE_PT * _MM_PER_PT, f"{self.page_no()} / {{nb}}", align="R")


class _SheetParser(HTMLParser):
    """Reads the sheet's own page, which is made of few elements."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[_Block | _TableBlock] = []
        self._cell: str | None = None
        self._block: _Block | None = None
        self._is_body = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = (dict(attrs).get("class") or "").split()
        self._is_body |= tag == "body"
        if tag in _BLOCKS:
            self._block = _Block(tag=tag, is_soft="lead" in classes)
            self.parts.append(self._block)
        elif tag == "table":
            self.parts.append(_TableBlock())
        elif tag == "tr":
            self._table.rows.append([])
        elif tag in {"th", "td"}:
            self._cell = ""
            if tag == "th":
                self._table.numbers.append(_NUMBER in classes)
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"th", "td"} and self._cell is not None:
            self._table.rows[-1].append(" ".join(self._cell.split()))
            self._cell = None
        elif tag in _BLOCKS:
            self._block = None

    def handle_data(self, data: str) -> None:
        if not self._is_body:
            return
        data = _in_latin_1(data)
        if self._cell is not None:
            self._cell += data
        elif self._block is not None:
            self._block.text += data

    @property
    def _table(self) -> _TableBlock:
        return next(part for part in reversed(self.parts) if isinstance(part, _TableBlock))


def as_pdf(page: str, title: str) -> bytes:
    """Set a guarantee sheet, given as its HTML page. The same page gives the same bytes."""
    read = _SheetParser()
    read.feed(page)
    pdf = _NumberedPdf(format="A4")
    pdf.set_creation_date(_EPOCH)
    pdf.set_title(title)
    pdf.set_margin(_MARGIN_MM)
    pdf.set_auto_page_break(auto=True, margin=_MARGIN_MM)
    pdf.add_page()
    number = 0
    for part in read.parts:
        if isinstance(part, _TableBlock):
            _set_table(pdf, part)
        else:
            number += part.tag == "li"
            _set_block(pdf, part, f"{number}. " if part.tag == "li" else "")
    return bytes(pdf.output())


def _in_latin_1(text: str) -> str:
    """Return a text with each character that the font lacks written in ASCII, such as an arrow as ``->``."""
    return "".join(letter if letter <= "\xff" else anyascii(letter) for letter in text.replace("→", "->"))


def _set_block(pdf: FPDF, block: _Block, sign: str) -> None:
    size_pt = _HEADING_PT.get(block.tag, _TEXT_PT)
    pdf.set_font(_FONT, "B" if block.tag in _HEADING_PT else "", size_pt)
    pdf.set_text_color(*(_GREY if block.is_soft else (0, 0, 0)))
    height_mm = _LINE * size_pt * _MM_PER_PT
    if block.tag == "h2":
        pdf.ln(height_mm / 2)
    text = sign + " ".join(block.text.split())
    pdf.multi_cell(0, height_mm, text, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(height_mm / 4)


def _set_table(pdf: FPDF, table: _TableBlock) -> None:
    pdf.set_font(_FONT, "", _TABLE_PT)
    pdf.set_text_color(0, 0, 0)
    with pdf.table(
        col_widths=_widths(pdf, table),
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        headings_style=FontFace(emphasis="BOLD", color=_GREY),
        line_height=_LINE * _TABLE_PT * _MM_PER_PT,
        padding=_PADDING_MM,
        text_align=tuple("RIGHT" if is_number else "LEFT" for is_number in table.numbers),
        wrapmode=WrapMode.CHAR if _has_long_word(pdf, table) else WrapMode.WORD,
    ) as drawn:
        for cells in table.rows:
            row = drawn.row()
            for cell in cells:
                row.cell(cell)
    pdf.ln(_TEXT_PT * _MM_PER_PT / 2)


def _widths(pdf: FPDF, table: _TableBlock) -> tuple[float, ...]:
    """Width of each column by its widest cell; those of words give way if a line would be too long."""
    wanted = [
        max(map(pdf.get_string_width, cells)) + 3 * _PADDING_MM for cells in zip(*table.rows, strict=True)
    ]
    numbers = sum(width for width, is_number in zip(wanted, table.numbers, strict=True) if is_number)
    words = sum(wanted) - numbers
    room = max(pdf.epw - numbers, pdf.epw / 3)
    shrunk = min(1.0, room / words) if words else 1.0
    return tuple(
        width if is_number else width * shrunk for width, is_number in zip(wanted, table.numbers, strict=True)
    )


def _has_long_word(pdf: FPDF, table: _TableBlock) -> bool:
    """Whether a word, such as a checksum, might be wider than its column."""
    words = [word for cells in table.rows for cell in cells for word in cell.split()]
    return max(map(pdf.get_string_width, words), default=0.0) > pdf.epw / (len(table.numbers) + 1)
