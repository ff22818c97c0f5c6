"""A drawn figure as the files of the documentation."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


def encoded(figure: Figure) -> dict[str, bytes]:
    """By the suffix of its file, without date and program, so that the same figure gives the same bytes."""
    found = {}
    for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], facecolor="white", dpi=160, metadata=metadata)
        found[suffix] = buffer.getvalue()
    return found
