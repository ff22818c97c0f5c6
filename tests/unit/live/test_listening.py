"""Whether the controller listens is looked up in its own network namespace."""

from __future__ import annotations

import os
import socket

from loko_testbed.live import session


def test_a_listening_port_is_found_in_the_namespace_of_the_process(monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        monkeypatch.setattr(session, "CONTROLLER_PORT", listener.getsockname()[1])
        assert not session._listens(os.getpid())
        listener.listen()
        assert session._listens(os.getpid())


def test_a_process_that_has_ended_listens_nowhere():
    assert not session._listens(2**22 + 1)
