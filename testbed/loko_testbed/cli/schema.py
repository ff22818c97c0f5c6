"""The command `loko schema`: what editors complete files by."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from loko.topology.schemas import SCHEMAS, schema_of


def schema(
    what: Annotated[str, typer.Argument(help=f"Of what: {', '.join(SCHEMAS)}.")],
) -> None:
    """Print the JSON Schema of a file that people write, for editors.

    Example: loko schema lab > lab.json
    """
    typer.echo(json.dumps(schema_of(what), indent=1))
