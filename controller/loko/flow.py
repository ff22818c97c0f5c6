"""Flows: who sends what to whom, within which token bucket."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, Field, RootModel, model_validator

from loko.calculus import TokenBucket
from loko.document import InputError, Strict, read

UdpPort = Annotated[int, Field(ge=1, le=65535)]


class Flow(Strict):
    """A unidirectional UDP flow. Rate and burst count frames with their FCS, without preamble."""

    id: str
    source: str
    destination: str
    udp_source: UdpPort
    udp_destination: UdpPort
    rate_bps: float = Field(gt=0, allow_inf_nan=False)
    burst_bytes: float = Field(gt=0, allow_inf_nan=False)
    frame_bytes: int = Field(ge=64, le=1518)

    @model_validator(mode="after")
    def _holds_a_frame(self) -> Self:
        if self.burst_bytes < self.frame_bytes:
            raise ValueError(
                f"burst_bytes {self.burst_bytes:g} is below frame_bytes {self.frame_bytes}; allow a frame"
            )
        return self

    @classmethod
    def trusted(cls, values: dict[str, str | float]) -> Self:
        """A flow of all its values, known to be right: not checked, and so made quickly. Keeps `values`."""
        flow = _new(cls)
        _set_values(flow, values)
        _set_names(flow, _FIELDS)
        _set_extra(flow, None)
        _set_private(flow, None)
        return flow

    @property
    def arrival(self) -> TokenBucket:
        """The token bucket that the sender keeps to."""
        return TokenBucket(rate_bps=self.rate_bps, burst_bytes=self.burst_bytes)


_FIELDS: Final = set(Flow.model_fields)  # copied before it is changed
_new: Final = object.__new__
# Past pydantic's own __setattr__, since a flow is frozen; by the slots, which takes half the time.
_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


class FiveTuple(NamedTuple):
    """What tells UDP flows apart on the wire."""

    source: str
    destination: str
    udp_source: int
    udp_destination: int

    @classmethod
    def of(cls, flow: Flow) -> FiveTuple:
        """The five-tuple of a flow, in names of hosts."""
        return cls._make((flow.source, flow.destination, flow.udp_source, flow.udp_destination))


def refuse_doubles(flows: Sequence[Flow]) -> Sequence[Flow]:
    """The flows, if no two have one id or one five-tuple. Raises `InputError`."""
    ids: set[str] = set()
    tuples: dict[FiveTuple, str] = {}
    for flow in flows:
        if flow.id in ids:
            raise InputError(f"flow id '{flow.id}' is used twice; rename one")
        ids.add(flow.id)
        key = FiveTuple.of(flow)
        if key in tuples:
            raise InputError(
                f"flows '{tuples[key]}' and '{flow.id}' have the same hosts and ports; change a port"
            )
        tuples[key] = flow.id
    return flows


class _FlowsFile(RootModel[Annotated[list[Flow], AfterValidator(refuse_doubles)]]):
    """A list of flows."""


def load_flows(path: str | Path) -> tuple[Flow, ...]:
    """Read a YAML or JSON list of flows. Raises `InputError` in one line."""
    if not Path(path).is_file():
        raise InputError(f"flows '{path}': no such file")
    return tuple(read(Path(path), _FlowsFile).root)


def dump_flows(flows: Sequence[Flow]) -> list[dict[str, object]]:
    """The flows as plain values, as `load_flows` reads them."""
    return [flow.model_dump() for flow in flows]
