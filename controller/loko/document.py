"""Strict documents: YAML, JSON and TOML files with a pydantic schema and one-line errors."""

from __future__ import annotations

import codecs
import difflib
import re
import shlex
import tomllib
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from loko.user_error import UserError, validator_message

_PACKAGED = Path(__file__).resolve().parent / "data"
DATA = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).resolve().parents[2]
"""Folder of the data that comes with the code: beside it in a checkout, inside an installed package."""
PROFILES = DATA / "switch-emulator" / "profiles"
LABS = DATA / "labs"


class InputError(UserError, ValueError):
    """Wrong input. The text is one line: what is wrong, where, and how to mend it."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the text: one for each thing that is wrong."""
        return tuple(str(line) for line in self.args)

    def __str__(self) -> str:
        first, *others = self.lines or ("",)
        return f"{first} (and {len(others)} more)" if others else first


class StrictModel(BaseModel):
    """A frozen record of a document. An unknown key is refused together with the keys that are allowed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    renamed_keys: ClassVar[Mapping[str, str]] = {}
    """Former names of keys, each with the present one, which the error states."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            allowed = _keys_of(cls)
            for key in data:
                if key not in allowed:
                    present = cls.renamed_keys.get(str(key))
                    close = [present] if present else difflib.get_close_matches(str(key), allowed, n=1)
                    hint = f"; did you mean '{close[0]}'?" if close else ""
                    raise PydanticCustomError(
                        "unknown_key",
                        "unknown key '{key}' (allowed: {allowed}){hint}",
                        {"key": str(key), "allowed": ", ".join(allowed), "hint": hint},
                    )
        return data


@cache
def _keys_of(model: type[BaseModel]) -> Mapping[str, None]:
    """Return the keys of a model, in its order. Cached: a profile has hundreds of records of few models."""
    return dict.fromkeys(field.alias or name for name, field in model.model_fields.items())


_Model = TypeVar("_Model", bound=BaseModel)


def find(
    name_or_path: str | Path,
    directory: Path,
    suffix: str,
    kind: str,
    *,
    but: Container[str] = (),
    elsewhere: Mapping[str, Path] = MappingProxyType({}),
) -> Path:
    """Return the file of a document given by name, by path, or by path within `directory`.

    A name is looked up in `directory`. `but` holds the names there that are no such documents, `elsewhere`
    documents in other folders by name. Raises `InputError`, listing the known names, if there is no such
    file.
    """
    text = str(name_or_path)
    if text in elsewhere:
        return elsewhere[text]
    by_name = directory / f"{text}{suffix}"
    if "/" not in text and text not in but and by_name.is_file():
        return by_name
    path = Path(name_or_path)
    for candidate in (path, directory / path):
        if candidate.is_file():
            return candidate
    names = (str(file.relative_to(directory)).removesuffix(suffix) for file in directory.glob(f"*{suffix}"))
    known = sorted([*(name for name in names if name not in but), *elsewhere])
    raise InputError(f"{kind} '{text}': no such name and no such file (names: {', '.join(known) or 'none'})")


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark. Raises `InputError`."""
    return decoded(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises `InputError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def decoded(data: bytes, name: str, *, is_file: bool = True) -> str:
    """Return text in UTF-8, or in UTF-16 with a byte order mark, with line ends as in Python.

    Raises `InputError` for other encodings, with the command that converts the file called `name`, or the
    standard input.
    """
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in data:
            raise InputError(f"{name}: is not a text file") from None
        file = f" {shlex.quote(name)}" if is_file else ""
        raise InputError(
            f"{name}: is not in UTF-8, perhaps in Windows-1252; save it in UTF-8, or convert it:"
            f" iconv -f WINDOWS-1252 -t UTF-8{file}"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read(path: Path, model: type[_Model], *, edit: Callable[[str], str] | None = None) -> _Model:
    """Read and check a `.toml`, `.json`, `.yml` or `.yaml` file, after `edit`. Raises `InputError`."""
    if path.suffix != ".toml":
        parsed = parse_file(path, edit=edit)
        return check(path, model, parsed.data, parsed.tree)
    try:
        return check(path, model, tomllib.loads(_edited(path, edit)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None


def _edited(path: Path, edit: Callable[[str], str] | None) -> str:
    text = read_text(path)
    return text if edit is None else edit(text)


class ParsedDocument(NamedTuple):
    """A YAML document that is not checked yet."""

    data: Any
    tree: yaml.Node | None
    """The parsed nodes, which know their lines; None if the document is empty."""

    def line(self, location: Sequence[int | str]) -> int | None:
        """Return the line, from 1, of the deepest part of the location that exists."""
        return _line_of(self.tree, location)


def parse_file(path: Path, *, edit: Callable[[str], str] | None = None) -> ParsedDocument:
    """Parse a `.json`, `.yml` or `.yaml` file, after `edit`. Raises `InputError`, also if it is empty."""
    parsed = parse(path, _edited(path, edit))
    if parsed.data is None:
        raise InputError(f"{path}: is empty, or has only comments; write its content")
    return parsed


def parse(path: Path, text: str) -> ParsedDocument:
    """Parse a YAML document; JSON is YAML too. Raises `InputError`."""
    try:
        tree = _composed(text)
        if (double := _double_key(tree)) is not None:
            line = double.start_mark.line + 1
            raise InputError(f"{path}:{line}: key '{double.value}' is there twice; remove one")
        return ParsedDocument(None if tree is None else yaml.SafeLoader("").construct_document(tree), tree)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        problem = getattr(error, "problem", None) or "syntax error"
        raise InputError(f"{where}: not valid YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except InputError:
        raise
    except (ValueError, OverflowError) as error:  # PyYAML on values such as the date 2020-13-01
        raise InputError(f"{path}: not valid YAML: {error}") from None


def _numbers_as_in_json(loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> Any:
    """Return a loader that reads `1e5` as a number, as in JSON and YAML 1.2; YAML 1.1 wants a point in it."""
    own: Any = type(loader.__name__, (loader,), {})
    own.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("+-0123456789"))
    return own


_EXPONENT: Final = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$")
_LOADER: Final = _numbers_as_in_json(yaml.SafeLoader)
_FAST_LOADER: Final = _numbers_as_in_json(yaml.CSafeLoader) if yaml.__with_libyaml__ else None


def _composed(text: str) -> yaml.Node | None:
    """Return the tree of a YAML document.

    libyaml parses it if possible. What it refuses goes to PyYAML's own parser, whose errors say more.
    """
    if _FAST_LOADER is not None:
        try:
            return yaml.compose(text, Loader=_FAST_LOADER)
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=_LOADER)


def _double_key(tree: yaml.Node | None) -> yaml.ScalarNode | None:
    """Return a key that a mapping has twice, if there is one; YAML itself would silently take the last."""
    waiting, visited = [tree], set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited:  # an alias
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        return key
                    keys.add(key.value)
                waiting.append(value)
    return None


def check(path: Path, model: type[_Model], data: Any, tree: yaml.Node | None = None) -> _Model:
    """Check the data of a file; `tree` tells the lines of a YAML document. Raises `InputError`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = document_errors(error)[0]
        raise InputError(
            located_message(path, _line_of(tree, problem.at), problem.name, problem.message)
        ) from None


def error_at(path: Path, location: Sequence[int | str], message: str) -> InputError:
    """Return an error about one place of a YAML document, such as `("links", 1, "b")`.

    Without the line if there is no such file, as for a lab made of values.
    """
    tree = _composed(path.read_text(encoding="utf-8")) if path.is_file() else None
    return InputError(located_message(path, _line_of(tree, location), _name(location), message))


class DocumentError(NamedTuple):
    """Fault of a document."""

    at: Sequence[int | str]
    """Location of the part to look at."""
    name: str
    """Path of the wrong part within the document; empty for the whole document."""
    message: str
    """The fault, in one line."""


def document_errors(error: ValidationError) -> list[DocumentError]:
    """Return everything that pydantic has found wrong."""
    return [_problem(details) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails) -> DocumentError:
    location: Sequence[int | str] = details["loc"]
    key = details.get("ctx", {}).get("key") if details["type"] == "unknown_key" else None
    return DocumentError([*location, key] if key else location, _name(location), _message(details))


_MESSAGES: Final = {
    "missing": "is missing",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("string_type", "string_sub_type"), "must be text"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"),
        "must be keys with values, as in 'name: value'",
    ),
}
"""Texts of pydantic's errors for the author of a document, by type."""
_LONGEST: Final = 40
"""A longer value is not repeated."""


def _message(details: ErrorDetails) -> str:
    known = _MESSAGES.get(details["type"])
    if known is None:
        return " ".join(validator_message(details["msg"]).split())
    value = details["input"]
    is_told = isinstance(value, str | int | float) and details["type"] != "missing"
    said = f", not {value!r}" if is_told and len(repr(value)) <= _LONGEST else ""
    limits = {key: _short(limit) for key, limit in details.get("ctx", {}).items()}
    return known.format(**limits) + said


def _short(limit: object) -> object:
    """Write 1.0 as 1: the limits of a rate are those of a number."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _name(location: Sequence[int | str]) -> str:
    return ".".join(map(str, location))


def located_message(path: str | Path, line: int | None, name: str, message: str) -> str:
    """Return one line: the place, the name of the part, and what is wrong with it."""
    where = f"{path}:{line}" if line else f"{path}"
    return f"{where}: {name}: {message}" if name else f"{where}: {message}"


def _line_of(tree: yaml.Node | None, location: Sequence[int | str]) -> int | None:
    """Return the line, from 1, of the deepest part of `location` that the tree has; None without a tree."""
    if tree is None:
        return None
    line, node = tree.start_mark.line + 1, tree
    for part in location:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if str(k.value) == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
