"""A point of a figure: everything that its runs depend on, but not how they are carried out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Backend, Lab
from loko.topology.network import Routed
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.traffic import Sender
from loko_testbed.tasks.provenance import commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Traffic through a lab, sent once for each seed."""

    figure: str
    """``PAPER/FIGURE``."""
    x: float
    """Position in the figure, which records store. Unique among the figure's points."""
    label: str
    """Text for the display of progress."""
    lab: Lab
    """The lab, including real boards if there are any."""
    routed: Sequence[Routed]
    """The admitted flows on their paths. Tables are made from these, whatever `senders` send."""
    scheme: str
    """The admission scheme of the controller in real time."""
    entries: int
    """Entries of each table."""
    senders: Sequence[Sender]
    seconds: float
    """Length of each run."""
    seeds: Sequence[int]
    """One for each run."""
    guarantees_ns: Mapping[int, float]
    """End-to-end guarantees of the flows that are judged, by number. Records do not depend on them."""
    echoes_per_s: float = 0
    """Rate of EchoRequests from the controller to each switch."""
    openflow: OpenFlow = OpenFlow.V1_0

    def with_backend(self, backend: Backend | None) -> Point:
        """Return the point with this backend for every switch (`Lab.with_backend`). Raises `InputError`."""
        return replace(self, lab=self.lab.with_backend(backend))

    def fingerprint(self, options: Options) -> dict[str, Any]:
        """Return everything that the records depend on except the seeds, as plain values.

        Equal fingerprints and seeds mean equal records in virtual time.
        """
        return {
            "figure": self.figure,
            "x": self.x,
            "mode": options.mode,
            "switches": options.switched_by(self.lab),
            "backend": options.backend,
            "builder": options.builder,
            "framework": options.driven_by,
            "real_boards": options.real_boards(),
            "capacity_factor": options.capacity_factor,
            "senders": options.senders.chosen,
            "profiles": {name: switch.profile.name for name, switch in self.lab.switches.items()},
            "commit": commit(),
            "admitted": [[route.flow.id, [hop.switch for hop in route.path]] for route in self.routed],
            "scheme": self.scheme,
            "entries": self.entries,
            "traffic": [flow.described() for flow in self.senders],
            "seconds": self.seconds,
            "echoes_per_s": self.echoes_per_s,
            "openflow": self.openflow.value,
        }


def seed_of(*words: object) -> int:
    """Derive a seed from words: the same words give the same seed."""
    text = " ".join(map(str, words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
