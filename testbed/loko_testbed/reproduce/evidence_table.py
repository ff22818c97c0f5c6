"""``python -m loko_testbed.reproduce.evidence_table DIR``: put the evidence of a replay into README.md.

DIR is the folder of a replay of all figures in virtual time. Its counts by paper, level and kind are kept in
`docs/measurements/evidence.json`, of which README's table is made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from loko.document import InputError
from loko_testbed.reproduce.result import ClaimKind, EvidenceLevel, read_results
from loko_testbed.reproduce.studies.pages import markdown_table
from loko_testbed.reproduce.verdicts import (
    LEVELS,
    ClaimCount,
    EvidenceLadder,
    evidence_ladder,
    ladder_rows,
    ladder_values,
    sentences,
)
from loko_testbed.tasks.files import write_atomically
from loko_testbed.tasks.provenance import checkout

RECORD: Final = Path("docs", "measurements", "evidence.json")
_README: Final = Path("README.md")
_BEGIN: Final = "<!-- evidence: begin -->\n"
_END: Final = "<!-- evidence: end -->\n"
_SHOWN: Final[Sequence[ClaimKind]] = ("predicted", "calibrated")
_LADDER: Final = TypeAdapter(dict[str, dict[EvidenceLevel, dict[ClaimKind, ClaimCount]]])


def main(words: Sequence[str]) -> None:
    """Record the counts of the folder that `words` name, and put the table into README.md."""
    root = checkout()
    try:
        if len(words) != 1:
            raise InputError("name one folder of results: loko evaluate --out DIR makes one")
        results = read_results(Path(words[0]))
        if not results:
            raise InputError(f"{words[0]}: holds no results; loko evaluate --out {words[0]} makes some")
        ladder = evidence_ladder(sentences(results))
        write_atomically(root / RECORD, recorded(ladder))
        readme = (root / _README).read_text(encoding="utf-8")
        write_atomically(root / _README, with_table(readme, ladder).encode())
    except InputError as error:
        print(f"evidence: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def recorded(ladder: EvidenceLadder) -> bytes:
    """Return the content of `RECORD` for these counts."""
    return json.dumps(dict(sorted(ladder_values(ladder).items())), indent=1).encode() + b"\n"


def read_record(root: Path) -> EvidenceLadder:
    """Return the counts that `RECORD` has. Raises `InputError` if it is missing or damaged."""
    path = root / RECORD
    try:
        return _LADDER.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise InputError(
            f"{path}: missing or damaged; make it: python -m loko_testbed.reproduce.evidence_table DIR"
        ) from None


def table(ladder: EvidenceLadder) -> str:
    """Return the table in Markdown: a row for each paper and kind, a column for each level of evidence."""
    return markdown_table(("paper", "hold", *LEVELS), ladder_rows(ladder, _SHOWN))


def with_table(readme: str, ladder: EvidenceLadder) -> str:
    """Return README's text with its table replaced. Raises `InputError` if it has no place for one."""
    before, begin, rest = readme.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise InputError(f"{_README}: has no place for the table: {_BEGIN.strip()} to {_END.strip()}")
    return f"{before}{begin}\n{table(ladder)}\n\n{end}{after}"


if __name__ == "__main__":
    main(sys.argv[1:])
