"""The web pages: static files beside this module that get all they show from the REST interface.

`/docs` is Swagger UI, from a package that contains its files, so that it needs no network.
"""

from __future__ import annotations

import hashlib
from importlib import resources
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
_VIEWER: Final = ("swagger-ui.css", "swagger-ui-bundle.js")
# Allow nothing from elsewhere, nothing inline, no frame: what the service says is never markup.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{images}; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY.format(images=""),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_DOCS_HEADERS: Final = {**_HEADERS, "Content-Security-Policy": _POLICY.format(images=" data:")}
"""Swagger UI's style sheet contains its symbols as data URLs."""


def add_pages(app: FastAPI) -> None:
    """Serve the page at `/`, the REST interface at `/docs`, and their parts below `/page/`, from memory."""
    viewer = resources.files("fastapi_swagger.resources")
    page_files = [*sorted(_FOLDER.iterdir()), *(viewer / name for name in _VIEWER)]
    files = {
        file.name: (file.read_bytes(), _TYPES[Path(file.name).suffix])
        for file in page_files
        if Path(file.name).suffix in _TYPES
    }
    tags = {name: f'"{hashlib.sha256(data).hexdigest()[:16]}"' for name, (data, _) in files.items()}

    def answer(request: Request, name: str) -> Response:
        if name not in files:
            return Response(status_code=404)
        headers = {**(_DOCS_HEADERS if name == "docs.html" else _HEADERS), "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        data, kind = files[name]
        return Response(data, media_type=kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def show_page(request: Request) -> Response:
        """The page."""
        return answer(request, "index.html")

    @app.get("/docs", include_in_schema=False)
    async def show_docs(request: Request) -> Response:
        """The REST interface."""
        return answer(request, "docs.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def show_part(request: Request, name: str) -> Response:
        """A part of a page."""
        return answer(request, name)
