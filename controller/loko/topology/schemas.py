"""JSON Schemas of the documents that people write: editors complete and check them while they are written.

They are made from what reads the documents: the models here, and the emulator's types for profiles. A file
finds its own by its first line, which the language servers of YAML know:
``# yaml-language-server: $schema=…``.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter
from switch_emulator import profile_schema

from loko.document import InputError
from loko.topology.lab import lab_schema
from loko.topology.requests import RequestDocument

SCHEMAS: Final = ("lab", "flows", "profile")
"""Kinds of documents that have a schema."""
SCHEMA_FOLDER: Final = ".schemas"
"""Where a new lab has them, beside its file."""
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(what: str) -> dict[str, Any]:
    """The JSON Schema of a lab's file, a list of flows, or a profile. Raises `InputError`."""
    if what == "lab":
        schema = lab_schema()
    elif what == "flows":
        schema = TypeAdapter(list[RequestDocument]).json_schema()
    elif what == "profile":
        schema = profile_schema()
    else:
        raise InputError(f"schema '{what}': there is none (there are: {', '.join(SCHEMAS)})")
    return {"$schema": _DRAFT, "title": _TITLES[what], **{k: v for k, v in schema.items() if k != "title"}}


_TITLES: Final = {
    "lab": "A lab (lab.yml)",
    "flows": "Requested flows (flows.yml)",
    "profile": "The profile of a device (TOML)",
}


def schema_line(what: str) -> str:
    """The first line of a file beside `SCHEMA_FOLDER`."""
    return f"# yaml-language-server: $schema={SCHEMA_FOLDER}/{what}.json"
