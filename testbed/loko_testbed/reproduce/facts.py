"""Facts that the papers state, as data with its place in the paper: `labs/papers/PAPER.yml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import yaml

from loko.document import LABS, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of a paper."""

    reference: str
    """``ID``, ``EXPERIMENT/OUTCOME`` or ``TABLE/ROW/COLUMN``."""
    where: str
    """Section, figure or table of the paper."""
    role: str
    """``calibration`` (a device alone), ``validation`` (the assembled system) or ``definition``."""
    text: str
    value: Any = None
    unit: str = ""
    recomputed: bool = False
    """Whether the value is computed from what the paper prints rather than printed itself."""
    counted_with: str = ""
    """Reference of another fact that the paper states in the same sentence, or that this one follows from."""
    used_in: tuple[str, ...] = ()
    """Where the fact is used without a claim on it: files of this project, or figures (``PAPER/ID``)."""
    not_covered: str = ""
    """Why nothing here uses, models or checks it; empty if something does."""

    @property
    def sentence(self) -> str:
        """Reference of the fact that stands for the paper's sentence when claims are counted."""
        return self.counted_with or self.reference

    @property
    def number(self) -> float:
        """The value as a number. Raises `InputError` if it is not numeric."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise InputError(f"fact {self.reference}: has no numeric value; choose a check without a number")
        return float(self.value)

    @property
    def value_in_words(self) -> str:
        """The value with its unit, such as "100 to 700 us"; empty if it has none."""
        return "" if self.value is None else f"{_in_words(self.value)} {self.unit}".rstrip()


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{str(name).replace('_', ' ')} {_in_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        is_range = len(value) == 2 and all(isinstance(end, int | float) for end in value)
        return (" to " if is_range else ", ").join(map(_in_words, value))
    return str(value)


def papers() -> tuple[str, ...]:
    """Return the names of all papers that have a file of facts, `labs/papers/PAPER.yml`."""
    return tuple(sorted(path.stem for path in (LABS / "papers").glob("*.yml")))


_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


@cache
def facts(paper: str) -> Mapping[str, Fact]:
    """Return all facts of a paper by reference. Raises `InputError` if there is no such paper."""
    path = LABS / "papers" / f"{paper}.yml"
    document = _document(paper)
    facts: dict[str, Fact] = {}
    try:
        for fact in _walk(document):
            if fact.reference in facts:
                raise InputError(f"{path}: {fact.reference} is there twice; rename one")
            facts[fact.reference] = fact
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a document of facts: {error}") from None
    for fact in facts.values():
        if fact.counted_with and (fact.counted_with not in facts or facts[fact.counted_with].counted_with):
            raise InputError(
                f"{path}: {fact.reference}: counted_with {fact.counted_with}: name one that counts alone"
            )
    return facts


def order(paper: str) -> tuple[str, ...]:
    """Return a paper's figures in the order of the paper; empty if its document does not state it."""
    return tuple(_document(paper).get("order", ()))


def paper_title(paper: str) -> str:
    """Return the paper's title. Raises `InputError` if there is no such paper."""
    return str(_document(paper)["meta"]["title"])


@cache
def _document(paper: str) -> Mapping[str, Any]:
    path = LABS / "papers" / f"{paper}.yml"
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"paper '{paper}': {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: not a document of facts")
    return document


def fact(paper: str, reference: str) -> Fact:
    """Return the fact with this reference. Raises `InputError` if the paper has none."""
    known = facts(paper)
    if reference not in known:
        raise InputError(f"{LABS / 'papers' / f'{paper}.yml'}: there is no fact '{reference}'")
    return known[reference]


def _walk(document: Mapping[str, Any]) -> Iterator[Fact]:
    for section in ("setup", "equations", "qualitative", "recomputed", "inconsistencies"):
        for item in document[section]:
            texts = (item.get(key) for key in ("what", "formula", "must_show", "says"))
            text = next((text for text in texts if text), "")
            yield _fact(item["id"], item, text, recomputed=section == "recomputed")
    for experiment in document["experiments"]:
        for outcome in experiment["outcomes"]:
            yield _fact(f"{experiment['id']}/{outcome['id']}", outcome, outcome["what"])
    for table in document["tables"]:
        for row in table["rows"]:
            for column, value in zip(table["columns"][1:], row[1:], strict=True):
                item = {**table, "value": value}
                yield _fact(f"{table['id']}/{row[0]}/{column}", item, f"{row[0]}: {column}")


def _fact(reference: str, item: Mapping[str, Any], text: str, *, recomputed: bool = False) -> Fact:
    return Fact(
        reference=reference,
        where=item["where"],
        role=item["role"],
        text=text,
        value=item.get("value", item.get("printed")),
        unit=item.get("unit", ""),
        recomputed=recomputed,
        counted_with=item.get("counted_with", ""),
        used_in=tuple(item.get("used_in", ())),
        not_covered=item.get("not_covered", ""),
    )
