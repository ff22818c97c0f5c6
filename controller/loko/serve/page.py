"""The web page: plain files beside this module, which ask the REST interface for all they show."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response

_FOLDER: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    # Nothing from elsewhere, nothing inline, in no frame: what the service says is never markup.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_page(app: FastAPI) -> None:
    """Serve the page at `/` and its parts below `/page/`, out of memory."""
    files = {
        path.name: (path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _TYPES
    }
    tags = {name: f'"{hashlib.sha256(data).hexdigest()[:16]}"' for name, (data, _) in files.items()}

    def answer(request: Request, name: str) -> Response:
        if name not in files:
            return Response(status_code=404)
        headers = {**_HEADERS, "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        data, kind = files[name]
        return Response(data, media_type=kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def show_page(request: Request) -> Response:
        """The page."""
        return answer(request, "index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def show_part(request: Request, name: str) -> Response:
        """A part of the page."""
        return answer(request, name)
