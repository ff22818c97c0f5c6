"""The REST interface, version 1. Errors have one shape: `{"error": {"code", "message", ...}}`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from loko.service.call_protocol import CallResponse, RestSettings
from loko.service.client_metrics import client_metrics
from loko.service.connections import Clients
from loko.service.counters import RequestMetrics
from loko.service.exposition import CONTENT_TYPE as METRICS_TYPE
from loko.service.faults import FaultKind
from loko.service.guard import BODY_BYTES, Asgi
from loko.service.manager_client import ManagerClient
from loko.service.openapi_links import add_links
from loko.service.page import add_pages
from loko.service.plain import PlainRoutes
from loko.service.shapes import (
    DelayHistoryView,
    DelayListView,
    DryRunView,
    EmulationView,
    ErrorBody,
    EventListView,
    FlowListView,
    FlowRequest,
    FlowView,
    HealthView,
    HostScheduleView,
    MarginView,
    ProtectionView,
    RemovalView,
    ReturnView,
    ScheduleView,
    ServiceView,
    SlotRequest,
    SwitchListView,
    TopologyView,
)
from loko.user_error import validator_message

_Call = Callable[..., Awaitable[Response]]
"""Calls the flow manager by the name of the call, and returns its answer."""
_ALWAYS: Final[dict[int, str]] = {
    400: "The request is malformed, names the service not exactly once by `Host`, or repeats a header.",
    408: "The request took too long to come.",
    413: f"The body has more than {BODY_BYTES} bytes.",
    421: "The service does not go by this name.",
    429: "Too many requests a second, or at once, from this address.",
    431: "The headers are too long.",
    500: "The service has failed; its log says how.",
    503: "The service works for too many others, ends, or cannot do this now.",
}
"""Errors that any request may get."""
_CHANGES: Final[dict[int, str]] = {
    401: "This needs the token.",
    403: "A page of another site may not change anything.",
}


def application(
    manager: ManagerClient, settings: RestSettings, clients: Clients, metrics: RequestMetrics
) -> Asgi:
    """Return the REST interface to a flow manager, and its page."""
    app = FastAPI(
        title="Loko",
        summary="Flows with guaranteed latency on low-cost switches",
        version="1",
        docs_url=None,  # page.py has one that loads nothing from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
    )

    async def explain(_: Request, problem: Exception) -> Response:
        return _http_error(metrics, problem)

    async def call(name: str, **values: object) -> Response:
        return _answered(metrics, await manager.call(name, **values))

    async def view(name: str, **values: str) -> Response:
        return _answered(metrics, await manager.view(name, **values))

    app.add_exception_handler(HTTPException, explain)
    _add_requests(app, call, metrics, gives_slots=settings.gives_slots)
    _add_release(app, call)
    _add_views(app, view)
    _add_protection(app, call, view)
    if settings.emulates:
        _add_emulation(app, call, view)
    _add_schedule(app, view)
    _add_margin(app, call)
    _add_watching(app, manager, view, clients, metrics)
    add_pages(app)
    _describe(app, needs_token=settings.token is not None)
    return PlainRoutes(app)


def _describe(app: FastAPI, *, needs_token: bool) -> None:
    """Correct in the OpenAPI document what FastAPI cannot know.

    FastAPI assumes that every path with parameters may be invalid; and it is the guard that asks for the
    token.
    """
    document = app.openapi()
    if needs_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path in document["paths"].values():
        for method, operation in path.items():
            if needs_token and method in {"post", "delete"}:
                operation["security"] = [{"token": []}]
            if "HTTPValidationError" in json.dumps(operation["responses"].get("422", {})):
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    add_links(document)


Responses = dict[int | str, dict[str, Any]]


def _responses(
    good: Mapping[int, tuple[type[BaseModel] | None, str]], errors: Mapping[int, str] = MappingProxyType({})
) -> Responses:
    """Return what an endpoint may answer, with the shape of each answer, for the OpenAPI document."""
    shapes: Responses = {
        status: {"model": ErrorBody, "description": text} for status, text in {**_ALWAYS, **errors}.items()
    }
    for status, (model, text) in good.items():
        shapes[status] = {"description": text} | ({} if model is None else {"model": model})
    return dict(sorted(shapes.items(), key=lambda status_and_shape: int(status_and_shape[0])))


_BAD_REQUEST: Final[dict[int, str]] = {
    415: "The body is not JSON by its `Content-Type`.",
    422: "The request makes no sense here.",
}


def _add_requests(app: FastAPI, call: _Call, metrics: RequestMetrics, *, gives_slots: bool) -> None:
    """Add the endpoints that request flows; those for what this service does not grant return an error."""
    good: dict[int, tuple[type[BaseModel] | None, str]] = {
        200: (FlowView, "The same flow is there already."),
        201: (FlowView, "The flow is installed."),
    }
    in_use = "a switch does not take it, id or hosts and ports are in use, or the service"

    async def admit(name: str, request: Request) -> Response:
        """Call for a flow to admit, or return an error if this service admits no flows."""
        if gives_slots:
            return _error(
                metrics, 409, "gives-slots", "this service gives slots and admits no flows: POST to /v1/slots"
            )
        wanted = await _read(request, FlowRequest, metrics)
        if isinstance(wanted, Response):
            return wanted
        return await call(
            name,
            flow=wanted.flow,
            path=wanted.path,
            deadline_ns=wanted.deadline_ns,
            protection=wanted.protection,
        )

    async def give_slot(name: str, request: Request) -> Response:
        """Call for a flow to get a slot, or return an error if this service gives no slots."""
        if not gives_slots:
            return _error(
                metrics,
                409,
                "admits-flows",
                "this service admits flows and gives no slots: POST to /v1/flows, or serve with --schedule",
            )
        wanted = await _read(request, SlotRequest, metrics)
        if isinstance(wanted, Response):
            return wanted
        return await call(name, timed=wanted.timed)

    @app.post(
        "/v1/flows",
        status_code=201,
        responses=_responses(
            good, {**_CHANGES, **_BAD_REQUEST, 409: f"It does not fit, {in_use} does not admit flows."}
        ),
        tags=["flows"],
        openapi_extra=_body_of(FlowRequest),
    )
    async def request_flow(request: Request) -> Response:
        """Admit a flow and install it. 201 with the guarantee and the path, once every switch has confirmed.

        200 if the same flow is there already. 409 with the reason and the limiting switch if it does not fit;
        the suggestion says so if it fits some milliseconds later, since flows were released shortly before.
        503 if a switch of its path is away; nothing remains of the request then.
        """
        return await admit("request", request)

    @app.post(
        "/v1/slots",
        status_code=201,
        responses=_responses(
            good, {**_CHANGES, **_BAD_REQUEST, 409: f"No slot is free, {in_use} gives no slots."}
        ),
        tags=["slots"],
        openapi_extra=_body_of(SlotRequest),
    )
    async def request_slot(request: Request) -> Response:
        """Give a flow a free slot and install it. No other flow is moved. Of a service with `--schedule`.

        201 with slot, offset, path and guarantee, once every switch has confirmed; 200 if the same flow is
        there already. 409 if no slot is free on its path: it says whether moving others might make room.
        """
        return await give_slot("request", request)

    asked = _responses(
        {200: (DryRunView, "What it would get.")},
        {**_CHANGES, **_BAD_REQUEST, 409: "It would not be granted, or the service grants in another way."},
    )

    @app.post("/v1/what-if/flow", responses=asked, tags=["flows"], openapi_extra=_body_of(FlowRequest))
    async def try_flow(request: Request) -> Response:
        """Return the answer to a request without granting it. Nothing is reserved: another may come first."""
        return await admit("what-if", request)

    @app.post("/v1/what-if/slot", responses=asked, tags=["slots"], openapi_extra=_body_of(SlotRequest))
    async def try_slot(request: Request) -> Response:
        """The slot that a flow would get if it were requested now. Of a service with `--schedule`."""
        return await give_slot("what-if", request)


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Describe the body of a request, for the OpenAPI document."""
    return {
        "requestBody": {
            "content": {"application/json": {"schema": model.model_json_schema()}},
            "required": True,
        }
    }


_Wanted = TypeVar("_Wanted", FlowRequest, SlotRequest)


async def _read(request: Request, model: type[_Wanted], metrics: RequestMetrics) -> _Wanted | Response:
    """Return the body of a request, or the response that says what is wrong with it."""
    if not _is_json(request.headers.get("content-type", "")):
        return _error(metrics, 415, "no-json", "give the flow as JSON: 'Content-Type: application/json'")
    try:
        wanted = model.model_validate_json(await request.body())
    except ValidationError as problem:
        return _error(metrics, 422, "invalid", _explained(problem.errors(include_url=False)[0]))
    request.scope["flow"] = wanted.id  # for the log
    return wanted


def _add_release(app: FastAPI, call: _Call) -> None:
    gone = _responses(
        {
            202: (RemovalView, "Gone but at switches that are away."),
            204: (None, "Gone everywhere."),
        },
        {**_CHANGES, 404: "There is no such flow.", 409: "It is being installed."},
    )

    @app.delete("/v1/flows/{flow_id}", status_code=204, responses=gone, tags=["flows"])
    async def delete_flow(_: Request, flow_id: str) -> Response:
        """Remove a flow. Its host must have stopped sending it: what it sends later is lost.

        204 once every switch has confirmed, 202 if only switches that are away have not. Entries go when what
        was sent has arrived, that of the first switch first, so it takes about twice the guarantee. What the
        flow may have left in queues is charged for some milliseconds more: a request that does not fit for
        that reason alone is told how long to wait.
        """
        return await call("release", flow_id=flow_id)


def _add_views(app: FastAPI, view: _Call) -> None:
    @app.get("/v1/service", responses=_responses({200: (ServiceView, "The service.")}), tags=["operation"])
    async def show_service(_: Request) -> Response:
        """Return the lab, the options, whether changes need a token, and whether delays are measured."""
        return await view("service")

    @app.get("/v1/flows", responses=_responses({200: (FlowListView, "All flows.")}), tags=["flows"])
    async def list_flows(_: Request) -> Response:
        """All flows, in the order in which they were requested."""
        return await view("flows")

    @app.get(
        "/v1/flows/{flow_id}",
        responses=_responses({200: (FlowView, "The flow.")}, {404: "There is no such flow."}),
        tags=["flows"],
    )
    async def show_flow(_: Request, flow_id: str) -> Response:
        """One flow."""
        return await view("flow", flow_id=flow_id)

    @app.get("/v1/switches", responses=_responses({200: (SwitchListView, "All switches.")}), tags=["network"])
    async def list_switches(_: Request) -> Response:
        """The switches: connection, use against allocation, entries of others."""
        return await view("switches")

    @app.get("/v1/topology", responses=_responses({200: (TopologyView, "The network.")}), tags=["network"])
    async def show_topology(_: Request) -> Response:
        """Switches, hosts and cables."""
        return await view("topology")

    @app.get("/v1/delays", responses=_responses({200: (DelayListView, "By flow.")}), tags=["flows"])
    async def show_delays(_: Request) -> Response:
        """Measured delays of each flow that sends, beside its guarantee; empty if nothing is measured."""
        return await view("delays")

    @app.get(
        "/v1/flows/{flow_id}/delays",
        responses=_responses(
            {200: (DelayHistoryView, "Span by span.")},
            {404: "There is no such flow, or nothing is measured."},
        ),
        tags=["flows"],
    )
    async def show_delays_over_time(_: Request, flow_id: str) -> Response:
        """Measured delays of one flow over time: the last minutes in which it sent, second by second."""
        return await view("delays-over-time", flow_id=flow_id)

    @app.get("/v1/notes", responses=_responses({200: (EventListView, "In order.")}), tags=["operation"])
    async def list_notes(_: Request) -> Response:
        """Return the latest events and refusals, kept over restarts."""
        return await view("notes")


def _add_margin(app: FastAPI, call: _Call) -> None:
    @app.get(
        "/v1/margin",
        responses=_responses({200: (MarginView, "The margin.")}, {404: "The service gives slots."}),
        tags=["network"],
    )
    async def show_margin(_: Request) -> Response:
        """How much slower than planned the switches may be before a promise to the flows of now falls."""
        return await call("margin")  # which takes too long for other views to wait for it


def _add_protection(app: FastAPI, call: _Call, view: _Call) -> None:
    @app.get(
        "/v1/protection",
        responses=_responses({200: (ProtectionView, "The protection.")}, {404: "Nothing is reserved."}),
        tags=["network"],
    )
    async def show_protection(_: Request) -> Response:
        """The failures that flows survive, and whether they would survive the next one now.

        Of a service with `--survive`.
        """
        return await view("protection")

    @app.post(
        "/v1/protection/return",
        responses=_responses({200: (ReturnView, "They return.")}, {**_CHANGES, 404: "Nothing is reserved."}),
        tags=["network"],
    )
    async def return_flows(_: Request) -> Response:
        """Let flows on backup paths return whose working paths are intact. No frame is lost."""
        return await call("return")


def _add_emulation(app: FastAPI, call: _Call, view: _Call) -> None:
    """Add the endpoints that cause faults, for a service whose boards are emulated."""
    at_cable = _responses(
        {204: (None, "The emulated lab is told.")}, {**_CHANGES, 404: "The lab has no such cable."}
    )
    at_switch = _responses(
        {204: (None, "The emulated lab is told.")}, {**_CHANGES, 404: "The lab has no such switch."}
    )

    @app.get("/v1/emulation", responses=_responses({200: (EmulationView, "The faults.")}), tags=["emulation"])
    async def show_faults(_: Request) -> Response:
        """Return the cables that are pulled out, and the switches that can be rebooted."""
        return await view("emulation")

    @app.post("/v1/emulation/cables/{cable}/pull", status_code=204, responses=at_cable, tags=["emulation"])
    async def pull_cable(_: Request, cable: str) -> Response:
        """Pull a cable of the emulated lab, such as `s1:3-s2:3`. What is on it is lost."""
        return await call("fault", kind=FaultKind.PULL, place=cable)

    @app.post("/v1/emulation/cables/{cable}/plug", status_code=204, responses=at_cable, tags=["emulation"])
    async def plug_cable(_: Request, cable: str) -> Response:
        """Plug a cable of the emulated lab in again."""
        return await call("fault", kind=FaultKind.PLUG, place=cable)

    @app.post(
        "/v1/emulation/switches/{switch}/reboot", status_code=204, responses=at_switch, tags=["emulation"]
    )
    async def reboot_switch(_: Request, switch: str) -> Response:
        """Reboot a switch of the emulated lab. It loses its table and its session."""
        return await call("fault", kind=FaultKind.REBOOT, place=switch)


def _add_schedule(app: FastAPI, view: _Call) -> None:
    @app.get(
        "/v1/schedule",
        responses=_responses({200: (ScheduleView, "The cycle.")}, {404: "The service gives no slots."}),
        tags=["slots"],
    )
    async def show_schedule(_: Request) -> Response:
        """The cycle that all hosts keep, and what it costs at most that no flow is ever moved."""
        return await view("schedule")

    @app.get(
        "/v1/hosts/{host}/sends",
        responses=_responses(
            {200: (HostScheduleView, "The send times.")},
            {404: "There is no such host, or the service gives no slots."},
        ),
        tags=["slots"],
    )
    async def show_sends(_: Request, host: str) -> Response:
        """Return the schedule of a host: one frame of each flow, at its offset in a base period, each period.

        Only flows that are in place: a host stops what is no longer listed, and then releases it.
        """
        return await view("sends", host=host)

    file = _responses(
        {200: (None, "The file, in TOML.")}, {404: "There is no such host, or the service gives no slots."}
    )
    file[200]["content"] = {"text/plain": {"schema": {"type": "string"}}}

    # Errors are JSON, as of all others: so the class of the response says no type.
    @app.get("/v1/hosts/{host}/source", responses=file, response_class=Response, tags=["slots"])
    async def show_source(_: Request, host: str) -> Response:
        """Return the host's schedule for its source: a file by which `zodiac-fx slots` sends."""
        return await view("source", host=host)


def _add_watching(
    app: FastAPI, manager: ManagerClient, view: _Call, clients: Clients, metrics: RequestMetrics
) -> None:
    health = _responses({200: (HealthView, "Every promise is kept, and every table is as it should be.")})
    health[503] = {"description": "Some are not, or the service ends.", "model": HealthView | ErrorBody}

    @app.get("/healthz", responses=health, tags=["operation"])
    @app.get("/v1/healthz", responses=health, tags=["operation"])
    async def show_health(_: Request) -> Response:
        """200 if every promise is kept and every switch holds what it should, else 503 with what does not."""
        return await view("health")

    @app.get(
        "/metrics",
        responses=_responses({200: (None, "The metrics.")}),
        response_class=PlainTextResponse,
        tags=["operation"],
    )
    async def show_metrics(_: Request) -> Response:
        """Metrics in the text format of Prometheus."""
        answer = await manager.view("metrics")
        return Response(answer.body + client_metrics(clients, metrics), media_type=METRICS_TYPE)

    @app.get(
        "/v1/events",
        responses=_responses({200: (None, "The stream.")}),
        response_class=EventStream,
        tags=["operation"],
    )
    async def stream_events(_: Request) -> Response:
        """Server-sent events: `note` for what happens, then `switches` and `flows` as they are after it.

        `delays`, at most twice a second, while they are measured.
        """
        return EventStream(manager.events.stream())


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def _answered(metrics: RequestMetrics, answer: CallResponse) -> Response:
    """Return the flow manager's answer as a response; count it if it is an error."""
    if answer.refusal is not None:
        metrics.refusals[answer.refusal] += 1
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type)


def _error(metrics: RequestMetrics, status: int, code: str, message: str) -> Response:
    metrics.refusals[code, ""] += 1
    body = json.dumps({"error": {"code": code, "message": message}})
    return Response(body, status_code=status, media_type="application/json")


def _is_json(content_type: str) -> bool:
    """Return whether a content type is `application/json`, whatever its parameters."""
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _explained(problem: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in problem["loc"] if part != "body")
    text = validator_message(str(problem["msg"]))
    return f"{where}: {text}" if where else text


def _http_error(metrics: RequestMetrics, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    response = _error(metrics, problem.status_code, "http", str(problem.detail))
    response.headers.update(problem.headers or {})
    return response
