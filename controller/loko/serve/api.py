"""The REST interface, version 1. Errors have one shape: `{"error": {"code", "message", ...}}`."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException

from loko.document import InputError
from loko.flow import FlowDocument
from loko.routing import path_through
from loko.serve.guard import TOO_LARGE, Asgi, TooLargeError
from loko.serve.outcome import (
    Conflict,
    Denied,
    Gone,
    Granted,
    Happening,
    NotTaken,
    Outcome,
    Unavailable,
    Unknown,
    Wrong,
)
from loko.serve.page import add_pages
from loko.serve.plain import PlainRoutes
from loko.serve.run import News, Operation
from loko.serve.views import ServiceView, flow_values, service_values, switch_values, topology_values

_KEEPALIVE_S: Final = 10.0
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"


class FlowRequest(FlowDocument):
    """A flow that is asked for. Rate and burst count frames with their FCS, without preamble."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "H1-H3",
                "source": "H1",
                "destination": "H3",
                "udp_source": 5000,
                "udp_destination": 6000,
                "rate_bps": 100000,
                "burst_bytes": 306,
                "frame_bytes": 306,
                "deadline_ns": 5000000,
            }
        },
    )

    id: str = Field(
        pattern=_NAME,
        description="Your name for it; one is made up without any.",
        default_factory=lambda: f"flow-{secrets.token_hex(6)}",
    )
    source: str = Field(max_length=64)
    destination: str = Field(max_length=64)
    path: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, min_length=1, max_length=256, description="Switches to cross; routed without."
    )
    deadline_ns: float | None = Field(None, gt=0, description="The guarantee must not exceed it.")


class ErrorDetail(BaseModel):
    """What went wrong. Of a flow that does not fit, also which limit of which switch it would exceed."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    switch: str | None = None


class ErrorBody(BaseModel):
    """The shape of all errors."""

    error: ErrorDetail


def application(operation: Operation, view: ServiceView) -> Asgi:
    """The interface to a service in operation, and its page."""
    app = FastAPI(
        title="Loko",
        summary="Flows with guaranteed latency on low-cost switches",
        version="1",
        docs_url=None,  # page.py has one that loads nothing from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorBody} for status in (401, 403, 404, 409, 413, 415, 422, 429, 503)
    }
    app.add_exception_handler(HTTPException, _http_error)
    _add_changes(app, operation, errors)
    _add_views(app, operation, view)
    add_pages(app)
    return PlainRoutes(app)


def _add_changes(app: FastAPI, operation: Operation, errors: dict[int | str, dict[str, Any]]) -> None:
    keeper = operation.keeper

    body = {"content": {"application/json": {"schema": FlowRequest.model_json_schema()}}, "required": True}

    @app.post(
        "/v1/flows",
        status_code=201,
        responses=errors,
        tags=["flows"],
        openapi_extra={"requestBody": body},
    )
    async def request_flow(request: Request) -> Response:
        """Admit a flow and install it. 201 with the guarantee and the path, once every switch has confirmed.

        200 if the same flow is there already. 409 with the reason and the limiting switch if it does not fit;
        the remedy says so where it fits after some milliseconds, since flows were released shortly before.
        503 if a switch of its path is away; nothing remains of the request then.
        """
        if not request.headers.get("content-type", "").startswith("application/json"):
            return _error(415, "no-json", "give the flow as JSON: 'Content-Type: application/json'")
        try:
            wanted = FlowRequest.model_validate_json(await request.body())
            flow = wanted.flow
            path = wanted.path and path_through(keeper.lab, flow.source, flow.destination, wanted.path)
        except TooLargeError:
            return _error(*TOO_LARGE)
        except ValidationError as problem:
            return _error(422, "invalid", _explained(problem.errors(include_url=False)[0]))
        except InputError as problem:
            return _error(422, "invalid", str(problem))
        outcome = await operation.request(flow, path or None, wanted.deadline_ns)
        if isinstance(outcome, Granted) and flow.id in keeper.promises:
            return _json(201 if outcome.is_new else 200, flow_values(keeper, flow.id))
        return _refused(outcome)

    @app.delete("/v1/flows/{flow_id}", status_code=204, responses=errors, tags=["flows"])
    async def delete_flow(_: Request, flow_id: str) -> Response:
        """Remove a flow. Its host must have stopped sending it: what it sends later is lost.

        204 once every switch has confirmed, 202 if only switches that are away have not. Entries go when what
        was sent has arrived, that of the first switch first, so it takes about twice the guarantee. What the
        flow may have left in queues is charged for some milliseconds more: a request that does not fit for
        that reason alone is told how long to wait.
        """
        outcome = await operation.release(flow_id)
        if isinstance(outcome, Gone):
            if not outcome.waiting_for:
                return Response(status_code=204)
            return _json(202, {"id": flow_id, "state": "removing", "waiting_for": list(outcome.waiting_for)})
        return _refused(outcome)


def _add_views(app: FastAPI, operation: Operation, view: ServiceView) -> None:
    keeper = operation.keeper

    @app.get("/v1/service", tags=["operation"])
    async def show_service(_: Request) -> Response:
        """What is served under which options, whether changes need a token, whether delays are measured."""
        return _json(200, service_values(keeper, view))

    @app.get("/v1/flows", tags=["flows"])
    async def list_flows(_: Request) -> Response:
        """All flows, in the order in which they were requested."""
        return _json(200, {"flows": [flow_values(keeper, name) for name in keeper.promises]})

    @app.get("/v1/flows/{flow_id}", responses={404: {"model": ErrorBody}}, tags=["flows"])
    async def show_flow(_: Request, flow_id: str) -> Response:
        """One flow."""
        if flow_id not in keeper.promises:
            return _refused(Unknown(flow_id))
        return _json(200, flow_values(keeper, flow_id))

    @app.get("/v1/switches", tags=["network"])
    async def list_switches(_: Request) -> Response:
        """The switches: connection, use against allocation, entries of others."""
        return _json(200, {"switches": [switch_values(keeper, name) for name in keeper.lab.switches]})

    @app.get("/v1/topology", tags=["network"])
    async def show_topology(_: Request) -> Response:
        """Switches, hosts and cables."""
        return _json(200, topology_values(keeper))

    @app.get("/healthz", tags=["operation"])
    @app.get("/v1/healthz", tags=["operation"])
    async def show_health(_: Request) -> Response:
        """200 if every switch holds exactly what it should, else 503 with those that do not."""
        late = [name for name, driver in keeper.drivers.items() if not driver.complete]
        return _json(
            503 if late else 200, {"healthy": not late, "scheme": keeper.admission.scheme, "late": late}
        )

    @app.get("/v1/delays", tags=["flows"])
    async def show_delays(_: Request) -> Response:
        """Measured delays of each flow that sends, beside its guarantee; empty if nothing is measured."""
        return _json(200, {"flows": operation.delays.values()})

    @app.get("/v1/events", tags=["operation"])
    async def stream_events(_: Request) -> Response:
        """Server-sent events: `note` for what happens, then `switches` and `flows` as they are after it.

        `delays`, at most twice a second, while they are measured.
        """
        return StreamingResponse(_events(operation), media_type="text/event-stream")


async def _events(operation: Operation) -> AsyncIterator[bytes]:
    keeper = operation.keeper
    with operation.watching() as queue:
        news: list[News] = []
        while True:
            notes = [one for one in news if isinstance(one, Happening)]
            for one in notes:
                values = {"kind": one.kind, "name": one.name, "text": one.text, "warning": one.warning}
                yield _event("note", values)
            if notes or not news:  # the first time, and now and then to show that it lives
                yield _event("switches", [switch_values(keeper, name) for name in keeper.lab.switches])
                yield _event("flows", [flow_values(keeper, name) for name in keeper.promises])
            yield _event("delays", operation.delays.values())
            try:
                news = [await asyncio.wait_for(queue.get(), _KEEPALIVE_S)]
                await asyncio.sleep(0.1)  # what happens together is shown together
                while not queue.empty():
                    news.append(queue.get_nowait())
            except TimeoutError:
                news = []


def _event(name: str, values: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(values)}\n\n".encode()


def _refused(outcome: Outcome) -> Response:
    """The answer to a request that was not granted."""
    details: dict[str, object] = {}
    match outcome:
        case Denied(refusal=refusal):
            details = {**refusal.as_values()}
            status, code, message = 409, "does-not-fit", str(refusal)
        case NotTaken(switch=switch, reason=reason):
            details = {"switch": switch}
            status, code, message = 409, "switch-refused", f"{switch} did not take the entry: {reason}"
        case Unavailable(switch=switch, reason=reason):
            details = {"switch": switch}
            status, code, message = 503, "switch-unavailable", f"{switch}: {reason}"
        case Conflict(flow_id=flow_id, reason=reason):
            status, code, message = 409, "conflict", f"flow '{flow_id}': {reason}"
        case Unknown(flow_id=flow_id):
            status, code, message = 404, "unknown-flow", f"there is no flow '{flow_id}'"
        case Wrong(reason=reason):
            status, code, message = 422, "invalid", reason
        case _:
            status, code, message = 409, "conflict", "the flow was removed meanwhile"
    return _error(status, code, message, **details)


def _error(status: int, code: str, message: str, **details: object) -> Response:
    return _json(status, {"error": {"code": code, "message": message, **details}})


def _json(status: int, values: object) -> Response:
    return Response(json.dumps(values), status_code=status, media_type="application/json")


def _explained(problem: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in problem["loc"] if part != "body")
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


async def _http_error(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return _error(problem.status_code, "http", str(problem.detail))
