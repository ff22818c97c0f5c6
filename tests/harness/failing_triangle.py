"""Boards in a triangle whose cables, tables and disk fail on purpose, for tests of flows that move."""

from __future__ import annotations

from random import Random
from typing import Final

from served_boards import ServedBoards

from loko.control.port_links import PortsReply
from loko.service.breaks import ViolationCause
from loko.service.outcome import FlowState

MS, S = 1_000_000, 1_000_000_000
CUT: Final = ("s1", 2)
"""The end at s1 of the cable on the shortest path from a to b."""


def set_link(served: ServedBoards, end: tuple[str, int] = CUT, *, is_up: bool) -> None:
    """Have a switch report the link at a port. A board says so once in a session, and as it connects."""
    switch, port = end
    for name, board in served.boards.items():
        board.board.link(board.now_ns, port, is_up or name != switch)
    served.manager.reply(served.now_ns, switch, PortsReply(0, {port: is_up}))
    served.carry()


def disturbed_step(served: ServedBoards, choice: Random, *, is_up: bool) -> bool:
    """Pass some time, in which cable, disk or a board may fail. Return whether the cable has a link."""
    if choice.random() < 0.01:
        is_up = not is_up
        set_link(served, is_up=is_up)
    if choice.random() < 0.03:
        served.full = not served.full
    if choice.random() < 0.003:
        served.reboot(choice.choice(sorted(served.boards)))
        served.boards["s1"].board.link(served.boards["s1"].now_ns, CUT[1], is_up)
    served.step(choice.choice((1, 5)) * MS)
    return is_up


def state(served: ServedBoards, name: str) -> tuple[FlowState, list[ViolationCause], list[str]]:
    """Return the state of a flow, why its promise is broken, and its path."""
    managed = served.manager.flows[name]
    return managed.state, [found.cause for found in managed.breaks], [hop.switch for hop in managed.path]


def kept(*path: str) -> tuple[FlowState, list[ViolationCause], list[str]]:
    """Return the `state` of an installed flow whose promise holds."""
    return FlowState.INSTALLED, [], list(path)
