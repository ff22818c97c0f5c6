"""Routes without machinery: an endpoint takes the request as it is and gives the response as it is.

FastAPI knows them, so that they are in its OpenAPI document. But its own way to an endpoint, past
dependencies, files and telemetry that nothing here uses, takes longer than the decision at its end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from re import Pattern

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from loko.serve.guard import Asgi, Receive, Scope, Send, answer

Endpoint = Callable[..., Awaitable[Response]]


class PlainRoutes:
    """Answers what is asked of the routes of an application, and passes on all else.

    Each endpoint takes the request, and the open parts of its path by name. What can be got can be asked for
    its headers alone (HEAD). The application's own pages and unknown paths are answered by itself.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app: Asgi = app
        self._fixed: dict[str, dict[str, Endpoint]] = {}
        """By path, then by method."""
        self._open: dict[str, tuple[Pattern[str], dict[str, Endpoint]]] = {}
        for route in app.routes:
            if not isinstance(route, APIRoute):
                continue
            if route.param_convertors:
                _, methods = self._open.setdefault(route.path, (route.path_regex, {}))
            else:
                methods = self._fixed.setdefault(route.path, {})
            methods.update(dict.fromkeys(route.methods or (), route.endpoint))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        methods, parts = self._find(scope["path"]) if scope["type"] == "http" else (None, {})
        if methods is None:
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            await _refuse(send, method, methods)
            return
        response = await endpoint(Request(scope, receive), **parts)
        if method == "HEAD":  # what is streamed would never end
            start = {"status": response.status_code, "headers": response.raw_headers}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body"})
            return
        await response(scope, receive, send)

    def _find(self, path: str) -> tuple[dict[str, Endpoint] | None, dict[str, str]]:
        """The endpoints of a path by method, and what stands in its open parts."""
        if methods := self._fixed.get(path):
            return methods, {}
        for pattern, candidates in self._open.values():
            if found := pattern.match(path):
                return candidates, found.groupdict()
        return None, {}


async def _refuse(send: Send, method: str, methods: dict[str, Endpoint]) -> None:
    allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
    text = f"{method} is not possible here; {allowed} is"
    await answer(send, 405, "http", text, headers=[(b"allow", allowed.encode())])
