"""Pulled data cables do not affect the service's sessions, tables and promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from board_end import BoardEnd
from served_boards import ServedBoards, flow

from loko.serve.outcome import Granted

PORT_STATUS = 12
TRUNK = 3
STEPS = 4_000
"""Four seconds. Boards check their links every second and a half."""


class Watched(BoardEnd):
    """A board that reports its links. `changes` holds each PORT_STATUS's port and whether it is down."""

    def __init__(self, config: dict[str, object], *, start_ns: int) -> None:
        super().__init__({**config, "ofchecks": True}, start_ns=start_ns)
        self.changes: list[tuple[int, bool]] = []

    def wait(self, duration_ns: int) -> list[bytes]:
        messages = super().wait(duration_ns)
        statuses = [message for message in messages if message[1] == PORT_STATUS]
        self.changes += [(int.from_bytes(status[16:18]), status[47] == 1) for status in statuses]
        return messages


@pytest.fixture
def served(tmp_path: Path) -> ServedBoards:
    boards = ServedBoards(tmp_path / "flows.sqlite")
    for name in boards.boards:
        boards.reboot(name)
        boards.boards[name] = Watched(dict(boards.config[name]), start_ns=boards.now_ns)
    boards.settle()
    return boards


def set_cable(served: ServedBoards, *, is_in: bool) -> None:
    for end in served.boards.values():
        end.board.link(end.now_ns, TRUNK, is_in)
    served.run(STEPS)


def test_a_pulled_cable_ends_neither_sessions_nor_promises(served: ServedBoards) -> None:
    assert served.request(flow(1)) == Granted("f1", is_new=True)
    set_cable(served, is_in=False)
    set_cable(served, is_in=True)
    for end in served.boards.values():
        assert isinstance(end, Watched)
        assert end.changes == [(TRUNK, True), (TRUNK, False)]
        assert end.is_open
    assert served.tables() == served.promised()
    assert served.events() == []
    # A flow is granted while the cable is out, too.
    set_cable(served, is_in=False)
    assert served.request(flow(2)) == Granted("f2", is_new=True)
    set_cable(served, is_in=True)
    assert served.tables() == served.promised()
