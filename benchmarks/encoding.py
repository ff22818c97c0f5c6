"""Encode figures as files for the documentation."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


def encoded(figure: Figure) -> dict[str, bytes]:
    """Return a figure's files by suffix, without date and program, so that equal figures give equal bytes."""
    values = {}
    for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], facecolor="white", dpi=160, metadata=metadata)
        values[suffix] = buffer.getvalue()
    return values
