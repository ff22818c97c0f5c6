"""The HTML templates of a package, as every page made from them is filled in."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def html_templates(package: str) -> Environment:
    """Return the templates in `package/templates`: values are escaped, and a missing one is an error."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
