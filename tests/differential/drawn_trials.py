"""Trials: steps drawn at random."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from frames import frame10, frame13
from messages10 import Drawn, message10
from messages13 import MISS_ENTRIES, Drawn13, message13
from steps import DOWN, NO_FLOOD, NO_FWD, NO_RECV, Step, message

ALL_ENTRIES: Final = {
    1: message(1, 16, struct.pack("!HH", 1, 0) + struct.pack("!I36xBxH", 0x3FFFFF, 0xFF, 0xFFFF)),
    4: message(
        4,
        18,
        struct.pack("!HH4x", 1, 0)
        + struct.pack("!B3xII4xQQ", 0xFF, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0)
        + struct.pack("!HH4x", 1, 4),
    ),
}


FIRST_MESSAGES: Final[dict[int, list[bytes]]] = {1: [], 4: MISS_ENTRIES}
"""Messages of a controller before all steps, by version."""


def draw(random: Random, version: int, count: int) -> list[Step]:
    """Return so many steps."""
    has_icmp, has_no_recv = random.random() < 0.5, random.random() < 0.3
    draw_frame: Callable[[], bytes]
    draw_message: Callable[[], bytes]
    if version == 1:
        draw_frame = partial(frame10, random, has_icmp=has_icmp)
        draw_message = partial(message10, random, Drawn(has_icmp=has_icmp, has_no_recv=has_no_recv))
    else:
        drawn = Drawn13.of(random, has_no_recv=has_no_recv)
        draw_frame = partial(frame13, random, may_be_tagged=not drawn.pushes)
        draw_message = partial(message13, random, drawn)
    flags = [DOWN, NO_FWD, *([NO_FLOOD] if version == 1 else []), *([NO_RECV] if has_no_recv else [])]
    # In 1.3 the first steps are messages, so that frames find entries in several tables.
    first_frame = 0 if version == 1 else count // 4
    steps: list[Step] = []
    while len(steps) < count:
        kind = random.random()
        if kind < 0.45 and len(steps) < first_frame:
            continue
        if kind < 0.45:
            steps.append(Step("frame", draw_frame(), port=random.choice((1, 2, 3))))
        elif kind < 0.93:
            steps.append(Step("message", draw_message()))
        else:
            mask = random.choice(flags)
            steps.append(
                Step("port", port=random.choice((1, 2, 3)), config=random.choice((0, mask)), mask=mask)
            )
    return steps
