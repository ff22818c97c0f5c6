"""Smaller requests in place of a refused flow. They are found by trying, and only when somebody reads it.

No formula for one limit can tell: a flow that keeps to it may exceed the next one, at another switch. So the
answer is a request that was tried, and that is granted as things are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from loko.admission.answer import Admitted, Refusal, Suggestion
from loko.document import InputError
from loko.switch_model.flow import Flow
from loko.topology.network import Hop

Ask = Callable[[Flow], Admitted | Refusal]
"""Decides on a request, on whatever path; admits nothing."""
Check = Callable[[Flow, Sequence[Hop] | None], Admitted | Refusal]
"""Decides on a request on one path, as `Admission.check` does."""
_LEAST_RATE_BPS: Final = 1


def suggest_more_entries(switch: str, planned: int, table: int) -> str:
    """Return the hint to plan for more entries; empty if the table has no more than are planned for."""
    if planned >= table:
        return ""
    return (
        f"{switch} has {table:,} entries, of which {planned:,} are planned for: plan for more with --entries"
    )


def suggest_on_path(check: Check, path: Sequence[Hop] | None, refusal: Refusal) -> Suggestion:
    """Return what would fit on the path on which a flow was refused."""
    return suggest_smaller(lambda flow: check(flow, path), check, refusal)


def suggest_smaller(ask: Ask, check: Check, refusal: Refusal) -> Suggestion:
    """Return the largest smaller request that is granted, in whole bit/s and bytes; empty if there is none.

    It lowers only the rate or only the burst if that is enough, trying first the one that was too large;
    otherwise it lowers the burst to one frame, and then the rate. `ask` decides as the next request will be
    decided; `check` is quicker, on a path that has granted something smaller.
    """
    flow = refusal.flow
    low = flow._replace(rate_bps=min(flow.rate_bps, _LEAST_RATE_BPS), burst_bytes=flow.frame_bytes)
    try:
        if isinstance(ask(low), Refusal):
            return Suggestion()
        by_burst_first = refusal.quantity.startswith(("burst", "delay"))
        for lower in (_burst, _rate) if by_burst_first else (_rate, _burst):
            if change := lower(flow, ask, check):
                return change
        rate = _rate(flow._replace(burst_bytes=flow.frame_bytes), ask, check)
        return rate._replace(burst_bytes=flow.frame_bytes) if rate else Suggestion()
    except InputError:  # the id may be in use by now
        return Suggestion()


def _rate(flow: Flow, ask: Ask, check: Check) -> Suggestion:
    most = _largest_granted(
        lambda value: flow._replace(rate_bps=float(value)),
        (_LEAST_RATE_BPS, math.ceil(flow.rate_bps) - 1),
        ask,
        check,
    )
    return Suggestion() if most is None else Suggestion(rate_bps=most)


def _burst(flow: Flow, ask: Ask, check: Check) -> Suggestion:
    most = _largest_granted(
        lambda value: flow._replace(burst_bytes=float(value)),
        (flow.frame_bytes, math.ceil(flow.burst_bytes) - 1),
        ask,
        check,
    )
    return Suggestion() if most is None else Suggestion(burst_bytes=most)


def _largest_granted(
    request: Callable[[int], Flow], between: tuple[int, int], ask: Ask, check: Check
) -> int | None:
    """Return the largest value that is granted, assuming that more is never easier to grant than less."""
    least, most = between
    granted = None
    while least <= most and isinstance(answer := ask(request(least)), Admitted):
        granted, refused = least, most + 1
        while refused - granted > 1:  # search on the path that granted the least
            middle = (granted + refused) // 2
            if isinstance(check(request(middle), answer.path), Admitted):
                granted = middle
            else:
                refused = middle
        least = granted + 1  # another path may have room for more
    return granted
