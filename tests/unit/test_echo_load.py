"""The load of EchoRequests: never two replies outstanding on a connection."""

from __future__ import annotations

import threading
import time

from loko.controller.echo_load import FIRST_XID, EchoLoad


class Switch:
    """Notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.sent.append(data)


class StoppedError(Exception):
    """Ends a load."""


def running(load: EchoLoad) -> None:
    def run() -> None:
        try:
            load.run_forever()
        except StoppedError:
            return

    threading.Thread(target=run, daemon=True).start()


def wait_for(condition) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.001)


def load_of(*switches: Switch) -> tuple[EchoLoad, threading.Event]:
    stop = threading.Event()

    def sleep(seconds: float) -> None:
        if stop.is_set():
            raise StoppedError
        time.sleep(seconds)

    return EchoLoad(lambda: {n: one.send for n, one in enumerate(switches)}, sleep), stop


def test_a_request_waits_for_the_reply_to_the_one_before() -> None:
    silent, lively = Switch(), Switch()
    load, stop = load_of(silent, lively)
    load.set_rate(500)
    running(load)
    for count in range(1, 20):
        wait_for(lambda count=count: len(lively.sent) == count)
        load.replied(1, lively.send)
    stop.set()
    assert len(silent.sent) == 1
    assert [data[:4] for data in lively.sent] == [bytes([1, 2, 0, 8])] * len(lively.sent)
    assert {int.from_bytes(data[4:], "big") >= FIRST_XID for data in lively.sent} == {True}


def test_other_requests_wait_for_the_reply_to_the_load() -> None:
    switch = Switch()
    load, stop = load_of(switch)
    load.set_rate(1000)
    running(load)
    wait_for(lambda: switch.sent)
    load.carry(0, switch.send, b"count")
    time.sleep(0.02)
    assert b"count" not in switch.sent
    load.replied(0, switch.send)
    assert switch.sent[1:] == [b"count"]
    time.sleep(0.02)
    assert len(switch.sent) == 2, "nor is a request sent before the count is answered"
    load.replied(0, switch.send)
    wait_for(lambda: len(switch.sent) == 3)
    stop.set()


def test_without_a_load_nothing_waits() -> None:
    switch = Switch()
    load, _ = load_of(switch)
    load.carry(0, switch.send, b"one")
    load.carry(0, switch.send, b"two")
    assert switch.sent == [b"one", b"two"]
