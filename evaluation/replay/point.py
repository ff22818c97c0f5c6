"""A point of a figure: everything that its runs depend on, and nothing of how they are carried out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluation.options import Options
from evaluation.provenance import commit
from evaluation.traffic import Sender
from loko.lab import Backend, Lab
from loko.network import Routed
from loko.scenario import OpenFlow


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What is sent through a lab, so many times."""

    figure: str
    """``PAPER/FIGURE``."""
    x: float
    """Its place in the figure, as records have it. No other point of the figure has the same."""
    label: str
    """As progress tells of it."""
    lab: Lab
    """With the real boards, if there are some."""
    routed: Sequence[Routed]
    """What was admitted, each flow on its path: tables are made of it, whatever is sent."""
    scheme: str
    """The admission scheme by which a controller in real time admits the flows."""
    entries: int
    """Entries of each table."""
    senders: Sequence[Sender]
    seconds: float
    """Length of each run."""
    seeds: Sequence[int]
    """One for each run."""
    guarantees_ns: Mapping[int, float]
    """What each flow that is judged was promised, end to end, by number. No record depends on it."""
    echoes_per_s: float = 0
    """EchoRequests that the controller sends to each switch."""
    openflow: OpenFlow = OpenFlow.V1_0

    def with_backend(self, backend: Backend | None) -> Point:
        """The same with this in the place of every switch (`Lab.with_backend`). Raises `InputError`."""
        return replace(self, lab=self.lab.with_backend(backend))

    def fingerprint(self, options: Options) -> dict[str, Any]:
        """All that the records depend on but the seeds, as plain values.

        Equal fingerprints and seeds mean equal records in virtual time.
        """
        return {
            "figure": self.figure,
            "x": self.x,
            "mode": options.mode,
            "switches": options.switched_by(self.lab),
            **carriage(self, options),
            "profiles": {name: switch.profile.name for name, switch in self.lab.switches.items()},
            "commit": commit(),
            "admitted": [[one.flow.id, [hop.switch for hop in one.path]] for one in self.routed],
            "scheme": self.scheme,
            "entries": self.entries,
            "traffic": [flow.described() for flow in self.senders],
            "seconds": self.seconds,
            "echoes_per_s": self.echoes_per_s,
            "openflow": self.openflow.value,
        }


def carriage(_figure: object, options: Options) -> dict[str, Any]:
    """What records depend on beside figure, scale and seed: `OneByOne.parameters` of figures with points."""
    return {
        "backend": options.backend,
        "builder": options.builder,
        "framework": options.driven_by,
        "real_boards": options.real_boards(),
        "capacity_factor": options.capacity_factor,
        "senders": options.senders.chosen,
    }


def seed_of(*words: object) -> int:
    """A seed for each text: what has the same words meets the same chances."""
    text = " ".join(map(str, words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
