"""Routes without FastAPI's machinery: an endpoint takes a plain request and returns a plain response.

FastAPI knows the routes, so they are in its OpenAPI document. But its own way to an endpoint, through
dependencies, files and telemetry that nothing here uses, takes longer than the decision itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from re import Pattern

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from loko.service.guard import Asgi, Receive, Scope, Send, answer

Endpoint = Callable[..., Awaitable[Response]]


class PlainRoutes:
    """Answers requests for the routes of an application, and passes on all others.

    Each endpoint takes the request, and its path's parameters by name. HEAD works wherever GET does. The
    application itself answers for its own pages and unknown paths.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app: Asgi = app
        self._fixed: dict[str, dict[str, Endpoint]] = {}
        """Endpoints by path, then by method."""
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
        """Return the endpoints of a path by method, and the values of its parameters."""
        if methods := self._fixed.get(path):
            return methods, {}
        for pattern, candidates in self._open.values():
            if match := pattern.match(path):
                return candidates, match.groupdict()
        return None, {}


async def _refuse(send: Send, method: str, methods: dict[str, Endpoint]) -> None:
    allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
    text = f"{method} is not possible here; {allowed} is"
    await answer(send, 405, "http", text, headers=[(b"allow", allowed.encode())])
