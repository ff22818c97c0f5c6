"""Everything that the REST process may ask of the flow manager."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from loko.admission.protection import Protection
from loko.admission.routing import path_through
from loko.document import InputError
from loko.schedule.timed_flow import TimedFlow
from loko.service.admitter import Decide, SchemeAdmitter
from loko.service.call_protocol import CallResponse
from loko.service.faults import Fault, FaultKind, cable_named, switches_that_restart
from loko.service.margins import Margins
from loko.service.metrics import manager_metrics
from loko.service.outcome import (
    Conflict,
    Disposition,
    DryRun,
    EntryRejected,
    Granted,
    Interrupted,
    InvalidRequest,
    NotStored,
    Refused,
    Released,
    RequestOutcome,
    Unavailable,
    UnknownFlow,
)
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.run import ServiceLoop
from loko.service.sidecar import Sidecar
from loko.service.slots import SlotAdmitter
from loko.service.views import (
    ServiceInfo,
    delay_values,
    flow_values,
    health_values,
    protection_values,
    schedule_values,
    sends_values,
    service_values,
    source_text,
    switch_values,
    topology_values,
    would_values,
)
from loko.switch_model.flow import Flow

_JSON: Final = "application/json"


class Calls:
    """Answers calls by name. The REST process has checked their values as far as that needs no lab."""

    def __init__(
        self,
        operation: ServiceLoop,
        admitter: SchemeAdmitter | SlotAdmitter,
        view: ServiceInfo,
        sidecar: Sidecar,
    ) -> None:
        self._operation = operation
        self._manager = operation.manager
        self._admitter = admitter
        self._sidecar = sidecar
        self._margins = None if isinstance(admitter, SlotAdmitter) else Margins(admitter)
        topology = _json(200, topology_values(self._manager.lab))
        self._views: dict[str, Callable[..., CallResponse]] = {
            "what-if": self._what_if,
            "service": lambda: _json(200, service_values(self._manager, view)),
            "flows": self._flows,
            "flow": self._flow,
            "switches": self._switches,
            "topology": lambda: topology,
            "delays": lambda: _json(200, {"flows": delay_values(self._manager, operation.delays)}),
            "delays-over-time": self._delays_over_time,
            "notes": lambda: _json(200, {"notes": operation.history.values()}),
            "protection": self._protection,
            "return": self._return_flows,
            "emulation": self._emulation,
            "fault": self._fault,
            "schedule": self._schedule,
            "sends": self._sends,
            "source": self._source,
            "health": self._health,
            "metrics": self._metrics,
        }

    async def answer(self, name: str, values: Mapping[str, Any]) -> CallResponse:
        """Return the answer to a call. A change is answered when it has been carried out."""
        match name:
            case "request":
                return await self._request(**values)
            case "release":
                return await self._release(**values)
            case "margin":
                return await self._margin()
            case _:
                return self._views[name](**values)

    # Changes.

    async def _request(self, **values: Any) -> CallResponse:
        wanted = self._wanted(values)
        if isinstance(wanted, CallResponse):
            return wanted
        flow, decide = wanted
        chosen = values.get("protection")
        protection = None if chosen is None else Protection(chosen)
        outcome = await self._operation.request(flow, decide, values.get("deadline_ns"), protection)
        if isinstance(outcome, Granted) and flow.id in self._manager.flows:
            return _json(201 if outcome.is_new else 200, flow_values(self._manager, flow.id))
        return _refused(outcome)

    def _what_if(self, **values: Any) -> CallResponse:
        wanted = self._wanted(values)
        if isinstance(wanted, CallResponse):
            return wanted
        outcome = self._operation.dry_run(*wanted)
        return _json(200, would_values(outcome)) if isinstance(outcome, DryRun) else _refused(outcome)

    def _wanted(self, values: Mapping[str, Any]) -> tuple[Flow, Decide] | CallResponse:
        """Return the requested flow and what decides on it, or an error if it makes no sense in this lab."""
        admitter, lab = self._admitter, self._manager.lab
        try:
            if isinstance(admitter, SlotAdmitter):
                timed = TimedFlow(*values["timed"])
                return admitter.on_the_wire(timed), admitter.decision(timed)
            flow, switches = Flow(*values["flow"]), values["path"]
            path = switches and path_through(lab, flow.source, flow.destination, switches)
        except InputError as problem:
            return _error(422, "invalid", str(problem))
        deadline_ns, protection = values["deadline_ns"], values["protection"]
        if isinstance(admitter, ProtectedAdmitter):
            chosen = None if protection is None else Protection(protection)
            return flow, admitter.decision(flow, path or None, deadline_ns, chosen)
        if protection is not None:
            return _error(422, "invalid", "protection: no flow survives failures here; leave it out")
        return flow, admitter.decision(flow, path or None, deadline_ns)

    async def _release(self, flow_id: str) -> CallResponse:
        outcome = await self._operation.release(flow_id)
        if isinstance(outcome, Released):
            if not outcome.waiting_for:
                return CallResponse(204)
            return _json(202, {"id": flow_id, "state": "removing", "waiting_for": list(outcome.waiting_for)})
        return _refused(outcome)

    # Views.

    def _flows(self) -> CallResponse:
        manager = self._manager
        return _json(200, {"flows": [flow_values(manager, name) for name in manager.flows]})

    def _flow(self, flow_id: str) -> CallResponse:
        if flow_id not in self._manager.flows:
            return _refused(UnknownFlow(flow_id))
        return _json(200, flow_values(self._manager, flow_id))

    def _switches(self) -> CallResponse:
        manager = self._manager
        return _json(200, {"switches": [switch_values(manager, name) for name in manager.lab.switches]})

    def _delays_over_time(self, flow_id: str) -> CallResponse:
        if flow_id not in self._manager.flows:
            return _refused(UnknownFlow(flow_id))
        values = self._operation.delays.over_time(flow_id, now_ns=time.monotonic_ns())
        if values is None:
            return _error(404, "not-measured", f"no delays are measured of flow '{flow_id}'")
        return _json(200, {**values, **self._manager.admitter.conditions.mark()})

    async def _margin(self) -> CallResponse:
        if self._margins is None:
            return _error(404, "gives-slots", "this service gives slots: it has no margin")
        return _json(200, await self._margins.values())

    def _emulation(self) -> CallResponse:
        restartable = switches_that_restart(self._manager.lab)
        return _json(200, {"pulled": sorted(self._sidecar.pulled), "restartable": list(restartable)})

    def _protection(self) -> CallResponse:
        protected = self._manager.protected
        if protected is None:
            return _NO_PROTECTION
        return _json(200, protection_values(self._manager, protected))

    def _return_flows(self) -> CallResponse:
        if self._manager.protected is None:
            return _NO_PROTECTION
        return _json(200, {"returning": self._operation.return_flows()})

    def _fault(self, kind: str, place: str) -> CallResponse:
        fault, lab = Fault(FaultKind(kind), place), self._manager.lab
        try:
            fault.refuse_unknown_place(lab)
        except InputError as problem:
            return _error(404, "unknown-place", str(problem))
        if fault.kind is not FaultKind.REBOOT:
            fault = fault._replace(place=cable_named(lab, place).name)
        self._sidecar.cause(fault)
        return CallResponse(204)

    def _schedule(self) -> CallResponse:
        if not isinstance(self._admitter, SlotAdmitter):
            return _NO_SCHEDULE
        return _json(200, schedule_values(self._manager, self._admitter))

    def _sends(self, host: str) -> CallResponse:
        if not isinstance(self._admitter, SlotAdmitter):
            return _NO_SCHEDULE
        return self._unknown_host(host) or _json(200, sends_values(self._manager, self._admitter, host))

    def _source(self, host: str) -> CallResponse:
        if not isinstance(self._admitter, SlotAdmitter):
            return _NO_SCHEDULE
        return self._unknown_host(host) or CallResponse(
            200, source_text(self._manager, self._admitter, host).encode(), "text/plain"
        )

    def _unknown_host(self, host: str) -> CallResponse | None:
        lab = self._manager.lab
        if host in lab.hosts:
            return None
        question = lab.which_interface(host) or f"has no host '{host}'"
        return _error(404, "unknown-host", f"lab '{lab.name}': {question}")

    def _health(self) -> CallResponse:
        values = {**health_values(self._manager), "storage": self._operation.storage_failure}
        return _json(200 if values["healthy"] else 503, values)

    def _metrics(self) -> CallResponse:
        operation = self._operation
        text = manager_metrics(
            self._manager,
            operation.delays,
            operation.stalls,
            restarts=operation.application.count,
            is_storage_available=operation.storage_failure is None,
        )
        return CallResponse(200, text)


def _json(status: int, values: object) -> CallResponse:
    return CallResponse(status, json.dumps(values).encode(), _JSON)


def _error(status: int, code: str, message: str, **details: object) -> CallResponse:
    answer = _json(status, {"error": {"code": code, "message": message, **details}})
    return answer._replace(refusal=(code, str(details.get("quantity", ""))))


_NO_PROTECTION: Final = _error(404, "not-protected", "no flow has a backup path here: serve with --survive")
_NO_SCHEDULE: Final = _error(404, "admits-flows", "this service admits flows: it has no schedule")


def _refused(outcome: RequestOutcome) -> CallResponse:
    """Return the answer to a request that was not granted."""
    details: dict[str, object] = {}
    match outcome:
        case Refused(refusal=refusal):
            details = {**refusal.as_values()}
            status, code, message = 409, "does-not-fit", str(refusal)
        case EntryRejected(switch=switch, reason=reason):
            details = {"switch": switch}
            status, code, message = 409, "switch-refused", f"{switch} did not take the entry: {reason}"
        case Unavailable(flow_id=flow_id, switch=switch, reason=reason, disposition=became):
            details = {"switch": switch, "disposition": became.value}
            text = f"{switch}: {reason}; {_told(flow_id, became)}"
            status, code, message = 503, "switch-unavailable", text
        case Interrupted(flow_id=flow_id, reason=reason, disposition=became):
            details = {"disposition": became.value}
            status, code, message = 503, "service-ending", f"{reason}; {_told(flow_id, became)}"
        case NotStored(flow_id=flow_id, reason=reason, disposition=became):
            details = {"disposition": became.value}
            status, code, message = 503, "storage-unavailable", f"{reason}; {_told(flow_id, became)}"
        case Conflict(flow_id=flow_id, reason=reason):
            status, code, message = 409, "conflict", f"flow '{flow_id}': {reason}"
        case UnknownFlow(flow_id=flow_id):
            status, code, message = 404, "unknown-flow", f"there is no flow '{flow_id}'"
        case InvalidRequest(reason=reason):
            status, code, message = 422, "invalid", reason
        case _:
            status, code, message = 409, "conflict", "the flow was removed meanwhile"
    return _error(status, code, message, **details)


def _told(flow_id: str, became: Disposition) -> str:
    """Say what became of a request that was not carried out."""
    match became:
        case Disposition.NOTHING:
            return "nothing of the request was begun: ask again"
        case Disposition.TAKEN_BACK:
            return f"flow '{flow_id}' was not granted and is taken back: ask again"
        case Disposition.CONTINUES:
            return f"flow '{flow_id}' is being removed, and goes on so after a restart"
        case Disposition.UNKNOWN:
            return f"what became of flow '{flow_id}' is not known: look for it when the service is back"
