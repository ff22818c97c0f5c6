"""Checks in front of the REST interface: host, token, origin, size, rate, and requests at once."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from starlette.requests import ClientDisconnect

from loko.control.rate_limited_logger import RateLimitedLogger
from loko.service.connections import AddressCounter, Clients, client_of
from loko.service.counters import RequestMetrics
from loko.service.hosts import KnownHosts, is_authority
from loko.service.journal import REQUEST, fields, request_id

AsgiMessage = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
HttpError = tuple[int, str, str]
"""Status, code and message of an error."""

BODY_BYTES: Final = 16_384
TOO_LARGE: Final = 413, "too-large", f"the body has more than {BODY_BYTES} bytes"
FOREIGN_HOST: Final = (
    *(421, "foreign-host"),
    "the service does not go by the name in 'Host'; ask it by its address, or start it with --allow-host",
)
FOREIGN_SCHEME: Final = 421, "foreign-scheme", "the service is asked by 'http://' only; change the target"
INTERNAL: Final = 500, "internal", "the service has failed at this request; its log says how, by X-Request-Id"
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_ONCE: Final = ("Origin", "Authorization", "Content-Type")
"""Headers that decide on a request. Of two, one could be checked and the other used (RFC 9110, 5.3).

The parser itself refuses a second `Content-Length`."""
_STREAMS: Final = frozenset({"/v1/events"})
_WATCHING: Final = frozenset({"/healthz", "/v1/healthz", "/metrics"})
"""Paths for monitoring, which has a rate of its own, whatever else comes from the same address."""
_MOST_CLIENTS: Final = 10_000
_CLOSED: Final = "the handler is closed"
"""uvloop's message for a connection whose client left while its request was still waiting."""
_LOG: Final = logging.getLogger("loko.service")


class Guard:
    """Passes requests on to `inner`, or answers them with an error in the common shape.

    `requests_per_s` limits each client address, with a burst of one second's worth. If a `token` is given,
    calls that change something must have it. A request that passes has its whole body, and an id for the log.
    """

    def __init__(
        self,
        inner: Asgi,
        *,
        hosts: KnownHosts,
        clients: Clients,
        metrics: RequestMetrics,
        token: str | None,
        requests_per_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._clock_s = clock_s
        self._hosts = hosts
        self._clients = clients
        self._metrics = metrics
        self._token = token
        self._rate = requests_per_s
        self._buckets: dict[str, tuple[float, float]] = {}
        self._limited_log = RateLimitedLogger(_LOG.warning)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began_s, status = self._clock_s(), 0
        headers = dict(scope["headers"])
        name = request_id(headers.get(b"x-request-id"))

        async def named(message: AsgiMessage) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            try:
                await send(message)
            except RuntimeError as error:
                if _CLOSED not in str(error):
                    raise
                raise ClientDisconnect from None

        before = REQUEST.set(name)
        try:
            await self._handle(scope, headers, receive, named)
        except ClientDisconnect:
            self._limited_log.warning("clients have left before they had asked, or were answered")
        except Exception:  # noqa: BLE001 - whatever it was, the client gets an answer, and others theirs
            _LOG.exception("%s %s has failed", scope["method"], scope["path"])
            if not status:
                await self._refuse(named, INTERNAL)
        finally:
            self._told(scope, status, self._clock_s() - began_s)
            REQUEST.reset(before)

    def _told(self, scope: Scope, status: int, took_s: float) -> None:
        if status:
            self._metrics.answers[scope["method"], status] += 1
        if _LOG.isEnabledFor(logging.DEBUG):
            values = fields(
                method=scope["method"],
                path=scope["path"],
                status=status or None,
                took_ms=round(took_s * 1e3, 3),
                client=_client(scope),
                **({"flow": scope["flow"]} if "flow" in scope else {}),
            )
            _LOG.debug("%s %s: %s", scope["method"], scope["path"], status or "not answered", extra=values)

    async def _handle(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._refuse(send, refusal)
            return
        client = client_of(_client(scope))
        if scope["method"] not in _READING:
            body = await _whole_body(receive)
            if body is None:
                await self._refuse(send, TOO_LARGE)
            else:
                await self._within(
                    self._clients.changes,
                    client,
                    lambda: self._inner(scope, _again(body, receive), send),
                    send,
                )
        elif scope["path"] in _STREAMS and scope["method"] == "GET":
            await self._within(self._clients.streams, client, lambda: self._inner(scope, receive, send), send)
        else:
            await self._inner(scope, receive, send)

    async def _within(
        self, counts: AddressCounter, client: str, work: Callable[[], Awaitable[None]], send: Send
    ) -> None:
        """Do the work if there is room for one more request of its kind, by this client and in all."""
        if not counts.has_room(client):
            is_clients = counts.of(client) >= counts.limit.by_address
            of_whom = "from your address" if is_clients else "in all"
            text = (
                f"as many requests of this kind as may be, {of_whom}, are open at once; end one, or ask again"
            )
            self._limited_log.warning(f"requests are refused: too many are open at once {of_whom}")
            await self._refuse(send, (429 if is_clients else 503, "busy", text), [(b"connection", b"close")])
            return
        counts.add(client)
        try:
            await work()
        finally:
            counts.remove(client)

    async def _refuse(
        self, send: Send, refusal: HttpError, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self._metrics.refusals[refusal[1], ""] += 1
        await answer(send, *refusal, headers=headers)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> HttpError | None:
        return (
            _repeated(scope)
            or self._unknown_host(scope)
            or self._too_much(scope, headers)
            or (None if scope["method"] in _READING else self._not_allowed(headers))
        )

    def _unknown_host(self, scope: Scope) -> HttpError | None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not is_authority(named[0]):
            return 400, "no-host", "name the service once: 'Host: ADDRESS'"
        if scope.get("scheme", "http") != "http":
            return FOREIGN_SCHEME
        reached = scope["server"][0] if scope.get("server") else ""
        return None if self._hosts.know(named[0], reached) else FOREIGN_HOST

    def _too_much(self, scope: Scope, headers: dict[bytes, bytes]) -> HttpError | None:
        client = client_of(_client(scope))
        if not self._has_room(f"{client} watching" if scope["path"] in _WATCHING else client):
            return 429, "too-many-requests", f"more than {self._rate:g} requests a second; ask more slowly"
        return TOO_LARGE if int(headers.get(b"content-length", b"0")) > BODY_BYTES else None

    def _not_allowed(self, headers: dict[bytes, bytes]) -> HttpError | None:
        """Return why a request that changes something is not allowed; None if it is."""
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
        # A refused request takes nothing: a client that asks too fast gets its rate, not silence.
        self._buckets[client] = (left - 1 if has_room else left, now_s)
        return has_room


def _repeated(scope: Scope) -> HttpError | None:
    names = [name for name, _ in scope["headers"]]
    for name in _ONCE:
        if names.count(name.lower().encode()) > 1:
            return 400, "repeated-header", f"'{name}' comes more than once; send it once"
    return None


def _client(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


async def _whole_body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large. Raises `ClientDisconnect`.

    It is read before anything else is done, so that a slow client takes no more than a connection.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body received earlier, then whatever else comes."""
    is_given = False

    async def give() -> AsgiMessage:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


async def answer(
    send: Send, status: int, code: str, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with an error."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    if status in {429, 503}:
        sent.append((b"retry-after", b"1"))
    if status == 401:
        sent.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
