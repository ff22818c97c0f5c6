"""Who decides which flows the keeper keeps: an admission scheme, or a schedule with its slots.

The two are siblings and share no protocol of their own: this is all that the keeper asks of either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from loko.admission import Admission, Admitted, Refusal, Usage
from loko.flow import Flow
from loko.lab import Lab
from loko.network import Hop, Routed
from loko.routing import admit
from loko.serve.outcome import StoredFlow, Turn


class Grant(Routed, Protocol):
    """A flow that was granted, on the path on which it was."""

    @property
    def guarantee_ns(self) -> float:
        """The bound on its delay from end to end."""


Decide = Callable[[], Grant | Refusal]
"""Decides on one request, and counts the flow if it is granted. Raises `InputError` for one without sense."""


class Granting(Protocol):
    """What it has granted, and what that takes. Times are of any clock that never goes back, passed in."""

    @property
    def scheme(self) -> str:
        """Its name."""

    def take_up(self, stored: StoredFlow) -> Grant | Refusal:
        """Grant again what was granted before a restart. Raises `InputError` if that is not possible here."""

    def turn(self, flow_id: str) -> Turn | None:
        """When a granted flow sends, if that was decided with it."""

    def timing(self, grant: Grant) -> dict[str, int] | None:
        """The same for what sends beside the service: `offset_ns`, `period_ns`, `guard_ns`."""

    def values(self, grant: Grant) -> dict[str, Any]:
        """What was decided on a flow, as plain values for JSON: guarantee, slot, path."""

    def advance(self, now_ns: int) -> None:
        """Let time pass."""

    def cancel(self, flow_id: str) -> None:
        """A flow that has sent nothing is gone."""

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:
        """A flow is gone that has sent until now, or until `sent_until_ns`."""

    def passage_ns(self, flow_id: str) -> int:
        """From the last frame that a flow sends until none of it is on its way."""

    def servers(self, grant: Grant) -> tuple[str, ...]:
        """The names of what may owe something after a flow: mostly the switches of its path."""

    def debt(self, server: str) -> float | None:
        """What released flows may have left there, if anything, for `restore`."""

    def restore(self, debts: Mapping[str, float], *, now_ns: int) -> None:
        """Take over debts that were written down. Raises `KeyError` or `ValueError` for others' debts."""

    def usage(self, switch: str) -> Usage:
        """What is used of a switch now."""


class AdmissionGranting:
    """Flows are granted by an admission scheme, one by one."""

    def __init__(self, lab: Lab, admission: Admission) -> None:
        self._lab, self._admission = lab, admission

    def decision(
        self, flow: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None
    ) -> Decide:
        """What decides on a flow: on a given path, or on the best one, within a deadline if there is one."""
        return lambda: admit(self._lab, self._admission, flow, deadline_ns, path)

    @property
    def scheme(self) -> str:
        """As `Granting`, and so are all that follow."""
        return self._admission.scheme

    def take_up(self, stored: StoredFlow) -> Grant | Refusal:
        """By its path."""
        return self._admission.request(stored.flow, stored.path)

    def turn(self, _flow_id: str) -> Turn | None:
        """Admitted flows send when they like, as their buckets allow."""
        return None

    def timing(self, _grant: Grant) -> dict[str, int] | None:
        """None, therefore."""
        return None

    def values(self, grant: Grant) -> dict[str, Any]:
        """Of each hop its bound, and the burst that comes to it."""
        assert isinstance(grant, Admitted)
        path = [
            {
                "switch": hop.switch,
                "output_port": hop.output_port,
                "delay_ns": hop.delay_ns,
                "burst_bytes": hop.arrival.burst_bytes,
            }
            for hop in grant.hops
        ]
        return {"guarantee_ns": grant.guarantee_ns, "path": path, "turn": None}

    def advance(self, now_ns: int) -> None:
        """What was released counts less and less."""
        self._admission.advance(now_ns)

    def cancel(self, flow_id: str) -> None:
        """Undo its request."""
        self._admission.cancel(flow_id)

    def release(self, flow_id: str, *, now_ns: int, sent_until_ns: int | None) -> None:
        """It counts on as long as what it has sent may matter."""
        self._admission.release(flow_id, now_ns=now_ns, sent_until_ns=sent_until_ns)

    def passage_ns(self, flow_id: str) -> int:
        """Until its burst is in the debt alone."""
        return self._admission.passage_ns(flow_id)

    def servers(self, grant: Grant) -> tuple[str, ...]:
        """What it has shared with others."""
        assert isinstance(grant, Admitted)
        return self._admission.servers(grant)

    def debt(self, server: str) -> float | None:
        """In the scheme's own unit."""
        return self._admission.debt(server)

    def restore(self, debts: Mapping[str, float], *, now_ns: int) -> None:
        """As if no time had passed."""
        self._admission.restore(debts, now_ns=now_ns)

    def usage(self, switch: str) -> Usage:
        """Whatever the scheme counts."""
        return self._admission.usage(switch)
