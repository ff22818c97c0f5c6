"""An expected traffic mix: kinds of flows, how frequent each is, where they go, what one is worth."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from loko.document import InputError, StrictModel, read

_MOST_REQUESTS: Final = 5000
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class TrafficPair(StrictModel):
    """A source and a destination among the hosts of the lab, and how frequent flows between them are."""

    source: str
    destination: str
    weight: _Positive = 1.0


class PathLength(StrictModel):
    """A path length in links between switches (0: both ends at one switch), and how frequent it is."""

    hops: int = Field(ge=0)
    weight: _Positive = 1.0


class FlowKind(StrictModel):
    """Flows that ask for the same. Rate and burst count frames with their FCS, without preamble."""

    name: str = ""
    rate_bps: _Positive
    burst_bytes: _Positive
    frame_bytes: int = Field(ge=64, le=1518)
    weight: _Positive = 1.0
    """How frequent it is among the requests, relative to the other kinds."""
    value: _Positive = 1.0
    """Value of an accepted flow."""
    deadline_ms: _Positive | None = None
    """A flow whose guarantee is longer is worth nothing."""
    between: list[TrafficPair] | None = Field(default=None, min_length=1)
    path_lengths: list[PathLength] | None = Field(default=None, min_length=1)
    """Where such flows go: between these hosts, or between all hosts so far apart, each pair as often as the
    others of its length. Without both: between all pairs of hosts, equally often."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.burst_bytes < self.frame_bytes:
            raise ValueError(
                f"burst_bytes {self.burst_bytes:g} is below frame_bytes {self.frame_bytes}; allow a frame"
            )
        if self.between is not None and self.path_lengths is not None:
            raise ValueError("between and path_lengths both say where the flows go; leave one of them out")
        return self


class Mix(StrictModel):
    """Expected requests: independent, as often as the weights say."""

    kinds: list[FlowKind] = Field(min_length=1)
    requests: int | None = Field(default=None, ge=1, le=_MOST_REQUESTS)
    """How many are expected at a time. Default: as many as fill all tables."""

    @property
    def frame_bytes(self) -> tuple[int, ...]:
        """Every frame size in the mix, in increasing order."""
        return tuple(sorted({kind.frame_bytes for kind in self.kinds}))

    @property
    def digest(self) -> str:
        """A hash that tells mixes apart; the order of their kinds and the names do not count."""
        kinds = sorted(kind.model_copy(update={"name": ""}).model_dump_json() for kind in self.kinds)
        return hashlib.sha256(f"{self.requests} {kinds}".encode()).hexdigest()[:16]


def load_mix(path: str | Path) -> Mix:
    """Read a YAML or JSON mix. Raises `InputError` in one line."""
    if not Path(path).is_file():
        raise InputError(f"mix '{path}': no such file")
    return read(Path(path), Mix)


def mix_of_equal(
    pairs: Sequence[tuple[str, str]], *, rate_bps: float, burst_bytes: float, frame_bytes: int
) -> Mix:
    """Return a mix of equal flows between some pairs of hosts."""
    between = [TrafficPair(source=source, destination=destination) for source, destination in pairs]
    kind = FlowKind(rate_bps=rate_bps, burst_bytes=burst_bytes, frame_bytes=frame_bytes, between=between)
    return Mix(kinds=[kind])
