"""Requested flows, with their deadlines if any, in a file that was written by hand or exported.

YAML, JSON, CSV or a workbook. Rates, sizes and times have units (``rate: 2.3 Mbit/s``, ``burst: 2 frames``,
``deadline: 5 ms``), or are in base units as programs write them (``rate_bps: 2300000``). All errors are
reported at once.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from loko.document import (
    DocumentError,
    InputError,
    ParsedDocument,
    decoded,
    document_errors,
    located_message,
    parse,
    read_bytes,
)
from loko.switch_model.flow import AddressedDocument, FiveTuple, Flow, TrafficClass, duplicates
from loko.topology.flow_table import FlowTable, is_table, is_workbook, text_table, workbook_table
from loko.units import Burst, FrameSize, Quantity, Rate, Time, number

if TYPE_CHECKING:
    from loko.topology.lab import Lab

STDIN: Final = "-"
_DESCRIBED: Final = "described"
"""The id of a flow that is described without one, and the name of its hosts."""
_FEW: Final = 8
"""So many hosts of a lab are told where another one is not known."""
_Taken = TypeVar("_Taken")


class Request(NamedTuple):
    """A flow that somebody asks for."""

    flow: Flow
    """If a period is stated, the rate is one frame per period and the burst, if not stated, one frame."""
    deadline_ns: float | None = None
    """Upper limit of the guarantee. None: any guarantee will do."""
    period_ns: int | None = None
    """The flow sends one frame per period, and no more. None: no period is stated."""


class RequestDocument(AddressedDocument):
    """A request as it is written down. Each quantity is given in one of its forms."""

    rate: Rate | None = None
    rate_bps: Quantity | None = None
    burst: Burst | None = None
    burst_bytes: Quantity | None = None
    frame: FrameSize | None = Field(default=None, ge=64, le=1518)
    frame_bytes: int | None = Field(default=None, ge=64, le=1518)
    deadline: Time | None = None
    deadline_ms: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False)
    deadline_ns: Quantity | None = None
    period: Time | None = None
    period_us: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False)
    traffic_class: TrafficClass = 1

    @model_validator(mode="after")
    def _says_each_once(self) -> Self:
        for forms in _FORMS:
            if len(given := self._given(forms)) > 1:
                raise ValueError(f"{' and '.join(given)} say the same; leave one out")
        if not self.size_bytes:
            raise ValueError("frame is missing; give the size of every frame, with FCS, such as 306 bytes")
        if len(rates := self._given(_RATES)) > 1:
            raise ValueError(f"{' and '.join(rates)} both say how often it sends; leave one out")
        if self.period_ns is not None and self.period_ns < 1:
            raise ValueError("a period below a nanosecond; give a longer one")
        size, burst_bytes = self.size_bytes, self.most_bytes
        if burst_bytes is not None and burst_bytes < size:
            raise ValueError(f"a burst of {burst_bytes:g} bytes is below a frame of {size}; allow a frame")
        return self

    def _given(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]

    @property
    def size_bytes(self) -> int:
        """Size of every frame; 0 if none is stated."""
        return self.frame or self.frame_bytes or 0

    @property
    def rate_of_bits(self) -> float | None:
        """The stated rate in bit/s."""
        return self.rate or self.rate_bps

    @property
    def most_bytes(self) -> float | None:
        """The burst, if one is stated."""
        return self.burst_bytes or (self.burst.of(self.size_bytes) if self.burst else None)

    @property
    def period_ns(self) -> int | None:
        """The time between two frames, if one is stated."""
        stated_ns = self.period or (None if self.period_us is None else 1e3 * self.period_us)
        return None if stated_ns is None else round(stated_ns)

    @property
    def request(self) -> Request:
        """The request that the document describes. Raises `ValueError` in one line without rate or burst."""
        size, rate_bps, burst_bytes = self.size_bytes, self.rate_of_bits, self.most_bytes
        if self.period_ns is not None:
            rate_bps, burst_bytes = size * 8e9 / self.period_ns, burst_bytes or float(size)
        if rate_bps is None:
            raise ValueError("rate is missing; give a rate such as 2.3 Mbit/s, or a period such as 20 ms")
        if burst_bytes is None:
            raise ValueError("burst is missing; give a burst such as 2 frames")
        flow = Flow(
            id=self.id,
            source=self.source,
            destination=self.destination,
            udp_source=self.udp_source,
            udp_destination=self.udp_destination,
            rate_bps=rate_bps,
            burst_bytes=burst_bytes,
            frame_bytes=size,
            traffic_class=self.traffic_class,
        )
        in_ms = None if self.deadline_ms is None else 1e6 * self.deadline_ms
        deadline_ns = self.deadline or self.deadline_ns or in_ms
        return Request(flow, deadline_ns, self.period_ns)


_FORMS: Final = (
    ("rate", "rate_bps"),
    ("burst", "burst_bytes"),
    ("frame", "frame_bytes"),
    ("deadline", "deadline_ms", "deadline_ns"),
    ("period", "period_us"),
)
"""The forms in which each quantity may be written."""
_RATES: Final = ("rate", "rate_bps", "period", "period_us")
_BASE_UNITS: Final = frozenset(form for forms in _FORMS for form in forms[1:])


def deadlines_of(requests: Sequence[Request]) -> dict[str, float]:
    """Return the deadlines in ns by flow id, for the flows that have one."""
    return {request.flow.id: request.deadline_ns for request in requests if request.deadline_ns is not None}


def has_lower_class(requests: Iterable[Request]) -> bool:
    """Return whether a flow is in a lower traffic class than the highest."""
    return any(request.flow.traffic_class > 1 for request in requests)


def in_class(request: Request, traffic_class: int) -> Request:
    """Return a request with its flow in a traffic class."""
    return request._replace(flow=request.flow._replace(traffic_class=traffic_class))


def no_such_flow(option: str, flow_id: str, known: Sequence[str]) -> InputError:
    """Return the error for an option that names a flow by an id that no flow has."""
    close = difflib.get_close_matches(flow_id, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return InputError(f"{option} {flow_id}: no flow has this id{hint}")


def described_request(name: str, text: str) -> Request:
    """Read a request without hosts, ports and id, such as ``period: 20 ms, frame: 306 bytes``.

    It has placeholders for these. `name` says in errors where the text stands. Raises `InputError`: a line
    for each error.
    """
    values = parse(Path(name), text if text.lstrip().startswith("{") else "{" + text + "}").data
    placeholders = {
        "id": _DESCRIBED,
        "source": _DESCRIBED,
        "destination": _DESCRIBED,
        "udp_source": 1,
        "udp_destination": 1,
    }
    if stray := [key for key in values if key in placeholders]:
        raise InputError(f"{name}: {stray[0]}: is for a flow of a list; leave it out")
    try:
        return RequestDocument.model_validate(values | placeholders).request
    except ValidationError as error:
        wrong = document_errors(error)
    except ValueError as error:
        wrong = [DocumentError((), "", str(error))]
    raise InputError(*(located_message(name, None, fault.name, fault.message) for fault in wrong))


def load_requests(
    path: str | Path, lab: Lab | None = None, *, columns: str | None = None
) -> tuple[Request, ...]:
    """Read a list of requests; ``-`` is the standard input. Raises `InputError`: a line for each error.

    With a lab, hosts that it does not have are among the errors. `columns` says what the columns of a table
    are whose headings say it otherwise (`FlowTable.named`).
    """
    return _each(path, lambda document: document.request, columns, lab)


def load_documents(path: str | Path, *, columns: str | None = None) -> tuple[RequestDocument, ...]:
    """Read a list as `load_requests` does, for callers that need not know how much each flow sends."""
    return _each(path, lambda document: document, columns)


def load_flows(path: str | Path, *, columns: str | None = None) -> tuple[Flow, ...]:
    """Read a list as `load_requests` does. Raises `InputError` if it has a deadline or a lower class."""
    requests = load_requests(path, columns=columns)
    for request in requests:
        stated = {"deadline": request.deadline_ns is not None, "traffic class": has_lower_class([request])}
        for what in (name for name, is_so in stated.items() if is_so):
            raise InputError(
                f"{path}: flow '{request.flow.id}' has a {what}, which is only asked for by 'loko plan';"
                " leave it out"
            )
    return tuple(request.flow for request in requests)


class _Row(NamedTuple):
    """One request before it is checked."""

    values: object
    check: Callable[[object], RequestDocument]
    line: Callable[[Sequence[int | str]], int | None]
    """Line of a part of the request, by its location."""


def _each(
    path: str | Path, take: Callable[[RequestDocument], _Taken], columns: str | None, lab: Lab | None = None
) -> tuple[_Taken, ...]:
    name, found = _rows_of(path, columns)
    rows = list(found)
    repeated = dict(duplicates(_identity(row.values) for row in rows))
    taken: list[_Taken] = []
    wrong: list[str] = []
    for place, row in enumerate(rows):
        wrong += [_told(name, row, problem) for problem in _wrong_hosts(row.values, lab)]
        if place in repeated:
            wrong.append(_told(name, row, _repetition(repeated[place])))
        try:
            taken.append(take(row.check(row.values)))
        except ValidationError as error:
            wrong += [_told(name, row, problem) for problem in document_errors(error)]
        except ValueError as error:
            wrong.append(_told(name, row, DocumentError((), "", str(error))))
    if wrong:
        raise InputError(*wrong)
    return tuple(taken)


def _repetition(other: str | None) -> DocumentError:
    """Return what is wrong with a flow that repeats the hosts and ports of another, or an id (None)."""
    if other is None:
        return DocumentError((), "", "this id is used twice; rename one")
    return DocumentError((), "", f"has the hosts and ports of '{other}'; change a port")


def _identity(values: object) -> tuple[str | None, FiveTuple | None]:
    """Return the id and the five-tuple of a request as written, also if other parts of it are wrong."""
    if not isinstance(values, Mapping):
        return None, None
    flow_id, source, destination, *ports = (values.get(key) for key in AddressedDocument.model_fields)
    if not (isinstance(source, str) and isinstance(destination, str)):
        five_tuple = None
    else:
        try:
            udp_source, udp_destination = (int(str(port)) for port in ports)
            five_tuple = source, destination, udp_source, udp_destination
        except ValueError:
            five_tuple = None
    return (flow_id if isinstance(flow_id, str) else None), five_tuple


def _wrong_hosts(values: object, lab: Lab | None) -> Iterator[DocumentError]:
    """Yield a flow from a host to itself, and names that are no host of the lab.

    Also of a request that is wrong in other ways.
    """
    if not isinstance(values, Mapping):
        return
    source, destination = values.get("source"), values.get("destination")
    if isinstance(source, str) and source == destination:
        yield DocumentError(
            ("destination",), "destination", f"is {source}, the source, too; give another destination"
        )
    if lab is None:
        return
    for key in ("source", "destination"):
        if isinstance(host := values.get(key), str) and host not in lab.hosts:
            if question := lab.which_interface(host):
                yield DocumentError((key,), key, question)
                continue
            known = list(lab.hosts)
            alike = {
                name.casefold(): [name] if name in lab.hosts else [host.name for host in interfaces]
                for name, interfaces in (*((host, ()) for host in known), *lab.machines.items())
            }
            close = [alike[name] for name in difflib.get_close_matches(host.casefold(), alike, n=1)]
            others = ", ".join(known[:_FEW]) + (", …" if len(known) > _FEW else "")
            meant = " or ".join(f"'{name}'" for name in close[0]) if close else ""
            hint = f"did you mean {meant}?" if close else f"it has {others}"
            yield DocumentError((key,), key, f"lab '{lab.name}' has no host '{host}'; {hint}")


def _rows_of(path: str | Path, columns: str | None) -> tuple[str, Iterator[_Row]]:
    """Return the name of the file for messages, and its requests before they are checked."""
    if str(path) == STDIN:
        name, suffix, data = "standard input", "", sys.stdin.buffer.read()
    else:
        name, suffix = str(path), Path(path).suffix.lower()
        if not Path(path).exists():
            raise InputError(f"flows '{path}': no such file")
        data = read_bytes(Path(path))
    if is_workbook(data):
        return name, _table_rows(workbook_table(name, data), columns)
    text = decoded(data, name, is_file=str(path) != STDIN)
    known = {".csv": True, ".yml": False, ".yaml": False, ".json": False}
    is_text_table = columns is not None or is_table(text, RequestDocument.model_fields)
    if known.get(suffix, is_text_table):
        return name, _table_rows(text_table(name, text), columns)
    if columns is not None:
        raise InputError(f"--columns: is for CSV and workbooks, which {name} is not; leave it out")
    return name, _listed_rows(name, text)


def _told(name: str, row: _Row, problem: DocumentError) -> str:
    flow_id = row.values.get("id") if isinstance(row.values, Mapping) else None
    parts = [f"flow '{flow_id}'" if flow_id else "", problem.name]
    return located_message(name, row.line(problem.at), ": ".join(filter(None, parts)), problem.message)


def _listed_rows(name: str, text: str) -> Iterator[_Row]:
    parsed = parse(Path(name), text)
    if parsed.data is None:
        raise InputError(f"{name}: is empty; begin each flow with '- id: …'")
    if not isinstance(parsed.data, list):
        raise InputError(f"{name}: is no list of flows; begin each flow with '- id: …'")
    for place, values in enumerate(parsed.data):
        yield _Row(values, RequestDocument.model_validate, _line_in(parsed, place))


def _line_in(parsed: ParsedDocument, place: int) -> Callable[[Sequence[int | str]], int | None]:
    return lambda location: parsed.line((place, *location))


def _table_rows(table: FlowTable, columns: str | None) -> Iterator[_Row]:
    for line, cells in table.named(columns, RequestDocument.model_fields):
        if isinstance(cells, str):
            yield _Row(None, _refusing(cells), _always(line))
        else:
            yield _Row(cells, _of_cells(cells), _always(line))


def _of_cells(values: Mapping[str, str]) -> Callable[[object], RequestDocument]:
    """Return what checks the cells of a row. Numbers in base units are read as people write them."""

    def check(_: object) -> RequestDocument:
        plain = {key: f"{number(cell)}" if key in _BASE_UNITS else cell for key, cell in values.items()}
        return RequestDocument.model_validate_strings(plain, strict=False)

    return check


def _refusing(message: str) -> Callable[[object], RequestDocument]:
    def refuse(_values: object) -> RequestDocument:
        raise ValueError(message)

    return refuse


def _always(line: int) -> Callable[[Sequence[int | str]], int | None]:
    return lambda _location: line
