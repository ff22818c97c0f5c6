"""Whether a program listens is looked up in its own network namespace."""

from __future__ import annotations

import os
import socket

from loko_testbed.instruments.network_namespace import listens


def test_a_listening_port_is_found_in_the_namespace_of_the_process() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert not listens(os.getpid(), port)
        listener.listen()
        assert listens(os.getpid(), port)


def test_a_process_that_has_ended_listens_nowhere() -> None:
    assert not listens(2**22 + 1, 6653)
