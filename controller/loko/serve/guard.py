"""What stands before the REST interface: token, origin, size and rate of requests."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES: Final = 16_384
TOO_LARGE: Final = (413, "too-large", f"the body has more than {BODY_BYTES} bytes")
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_CLIENTS: Final = 10_000


class TooLargeError(Exception):
    """The body turns out to have more than `BODY_BYTES`."""


class Guard:
    """Lets requests pass to `inner`, or answers them with an error in the shape of all errors.

    `requests_per_s` bounds each client address, with a burst of a second's worth. `token` is asked of calls
    that change something, if it is given.
    """

    def __init__(
        self,
        inner: Asgi,
        *,
        token: str | None,
        requests_per_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._clock_s = clock_s
        self._token = token
        self._rate = requests_per_s
        self._buckets: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await answer(send, *refusal)
            return
        received = 0

        async def limited() -> MutableMapping[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_BYTES:
                raise TooLargeError
            return message

        await self._inner(scope, limited, send)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        client = scope["client"][0] if scope.get("client") else ""
        if not self._has_room(client):
            return 429, "too-many-requests", f"more than {self._rate:g} requests a second; ask more slowly"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > BODY_BYTES:
            return TOO_LARGE
        if scope["method"] in _READING:
            return None
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
            return 403, "foreign-origin", "a page of another site may not change anything here"
        if self._token is not None:
            expected = b"Bearer " + self._token.encode()
            if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
                return 401, "no-token", "give the token: 'Authorization: Bearer TOKEN'"
        return None

    def _has_room(self, client: str) -> bool:
        now_s = self._clock_s()
        left, since_s = self._buckets.get(client, (self._rate, now_s))
        left = min(self._rate, left + (now_s - since_s) * self._rate)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.clear()
        has_room = left >= 1
        # What is refused takes nothing: who asks too fast gets the rate, not silence.
        self._buckets[client] = (left - 1 if has_room else left, now_s)
        return has_room


async def answer(send: Send, status: int, code: str, message: str) -> None:
    """Answer with an error."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
