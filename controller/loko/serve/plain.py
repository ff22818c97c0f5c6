"""Routes without machinery: an endpoint takes the request as it is and gives the response as it is.

FastAPI knows them, so that they are in its OpenAPI document. But its own way to an endpoint, past
dependencies, files and telemetry that nothing here uses, takes longer than the decision at its end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from re import Pattern

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from loko.serve.guard import Asgi, Receive, Scope, Send

Endpoint = Callable[..., Awaitable[Response]]


class PlainRoutes:
    """Answers what is asked of the routes of an application, and passes on all else.

    Each endpoint takes the request, and the open parts of its path by name. The application's own pages,
    unknown paths and wrong methods are answered by itself.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app: Asgi = app
        self._fixed: dict[tuple[str, str], Endpoint] = {}
        self._open: dict[str, list[tuple[Pattern[str], Endpoint]]] = {}
        for route in app.routes:
            if not isinstance(route, APIRoute):
                continue
            for method in route.methods or ():
                if route.param_convertors:
                    self._open.setdefault(method, []).append((route.path_regex, route.endpoint))
                else:
                    self._fixed[method, route.path] = route.endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        endpoint, parts = self._find(scope) if scope["type"] == "http" else (None, {})
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        response = await endpoint(Request(scope, receive), **parts)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[Endpoint | None, dict[str, str]]:
        method, path = scope["method"], scope["path"]
        if endpoint := self._fixed.get((method, path)):
            return endpoint, {}
        for pattern, candidate in self._open.get(method, ()):
            if found := pattern.match(path):
                return candidate, found.groupdict()
        return None, {}
