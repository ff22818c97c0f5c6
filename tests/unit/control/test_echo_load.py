"""The load of EchoRequests never has two replies outstanding on a connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loko.control.echo_load import FIRST_XID, EchoLoad


class Switch:
    """Records what is sent to it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.sent.append(data)


class StoppedError(Exception):
    """Ends a load."""


class Run:
    """A load on some switches, in virtual time."""

    def __init__(self, *switches: Switch, rate_pps: float) -> None:
        self.now_s = 0.0
        self._end_s = 0.0
        self._each_turn: Callable[[], object] = bool
        self.load = EchoLoad(
            lambda: {number: switch.send for number, switch in enumerate(switches)},
            self._sleep,
            lambda: self.now_s,
        )
        self.load.set_rate(rate_pps)

    def go_on(self, seconds: float, each_turn: Callable[[], object] = bool) -> None:
        """Let time pass, and call `each_turn` before each request."""
        self._end_s, self._each_turn = self.now_s + seconds, each_turn
        with pytest.raises(StoppedError):
            self.load.run_forever()

    def _sleep(self, seconds: float) -> None:
        if self.now_s + seconds > self._end_s:
            self.now_s = self._end_s
            raise StoppedError
        self.now_s += seconds
        self._each_turn()


def test_a_request_waits_for_the_reply_to_the_one_before() -> None:
    silent, lively = Switch(), Switch()
    run = Run(silent, lively, rate_pps=500)
    run.go_on(1, lambda: run.load.replied(1, lively.send))
    assert len(silent.sent) == 1
    assert len(lively.sent) == pytest.approx(500, abs=1)
    assert [data[:4] for data in lively.sent] == [bytes([1, 2, 0, 8])] * len(lively.sent)
    assert {int.from_bytes(data[4:], "big") >= FIRST_XID for data in lively.sent} == {True}


def test_other_requests_wait_for_the_reply_to_the_load() -> None:
    switch = Switch()
    run = Run(switch, rate_pps=1000)
    run.go_on(1)
    assert len(switch.sent) == 1
    run.load.carry(0, switch.send, b"count")
    run.go_on(1)
    assert b"count" not in switch.sent
    run.load.replied(0, switch.send)
    assert switch.sent[1:] == [b"count"]
    run.go_on(1)
    assert len(switch.sent) == 2, "nor is a request sent before the count is answered"
    run.load.replied(0, switch.send)
    run.go_on(1)
    assert len(switch.sent) == 3


def test_what_is_late_is_not_made_up_for() -> None:
    switch = Switch()
    run = Run(switch, rate_pps=100)

    def answer() -> None:
        run.load.replied(0, switch.send)

    run.go_on(1, answer)
    before = len(switch.sent)
    run.now_s += 5  # the machine stands still
    run.go_on(1, answer)
    assert len(switch.sent) - before == pytest.approx(100, abs=2)


def test_without_a_load_nothing_waits() -> None:
    switch = Switch()
    run = Run(switch, rate_pps=0)
    run.load.carry(0, switch.send, b"one")
    run.load.carry(0, switch.send, b"two")
    run.go_on(1)
    assert switch.sent == [b"one", b"two"]
