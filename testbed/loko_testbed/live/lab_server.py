"""The first process of a confined tree: it serves requests until no client is left.

``python -m loko_testbed.live.lab_server DESCRIPTOR ...``, started by `loko_testbed.live.confinement` alone.
It never ends a process or removes an interface: when it ends, the kernel does.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from loko.document import InputError
from loko_testbed.instruments.programs import run
from loko_testbed.live.confinement import SCRATCH, Failure
from loko_testbed.live.messages import BuildRequest, FaultRequest, ServeRequest, StatusRequest, TrafficRequest
from loko_testbed.live.session import Session
from loko_testbed.simulation.runner import RunError


class LabServer:
    """Carries out requests on the one lab of this tree."""

    def __init__(self, outside_network: Path) -> None:
        """`outside_network` names the network namespace from which the tree was started."""
        self._outside_network = outside_network
        self._session: Session | None = None
        self.listener: Listener | None = None

    def reply(self, request: Any) -> Any:
        """Carry out a request and return the answer. Raises `RunError` or `InputError`."""
        if isinstance(request, BuildRequest):
            os.sched_setaffinity(0, request.cores.others)
            self._session = Session(request, SCRATCH, self._outside_network)
            return self._session.status()
        if isinstance(request, ServeRequest):
            self.listener = Listener(str(request.socket), family="AF_UNIX")
            return None
        if self._session is None:
            raise RunError("the lab is not built yet")
        if isinstance(request, TrafficRequest):
            return self._session.run(request)
        if isinstance(request, StatusRequest):
            return self._session.status()
        if isinstance(request, FaultRequest):
            self._session.cause(request.fault)
            return None
        raise RunError(f"a live lab does not know the request {type(request).__name__}")

    def serve(self, connection: Connection) -> None:
        """Answer requests until the other side has gone."""
        for request in _requests(connection):
            try:
                answer = self.reply(request)
            except (RunError, InputError) as error:
                answer = Failure(str(error))
            connection.send(answer)


def _requests(connection: Connection) -> Iterator[Any]:
    while True:
        try:
            yield connection.recv()
        except (EOFError, ConnectionError):
            return


def _end_when_left(descriptor: int, server: LabServer) -> None:
    """End this process when the client has gone for good, even in the middle of a request."""
    watch = select.poll()
    watch.register(descriptor, select.POLLRDHUP)
    watch.poll()
    if server.listener is None:
        os._exit(0)


def main() -> None:
    """Serve the descriptor named by the first argument; then the socket of a `ServeRequest`, for ever.

    The second argument names a descriptor of the network namespace outside of the tree. The other descriptors
    only have to stay open as long as the tree is there.
    """
    for descriptor in sys.argv[1:]:
        os.set_inheritable(int(descriptor), False)
    # A private file system for scripts, captures and logs: it goes with the tree, and nobody else sees it.
    run(["mount", "-t", "tmpfs", "-o", "mode=0700", "loko", str(SCRATCH)], what="private files")
    os.environ["TMPDIR"] = str(SCRATCH)
    server = LabServer(Path(f"/proc/{os.getpid()}/fd/{sys.argv[2]}"))
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_when_left, args=(connection.fileno(), server), daemon=True).start()
    server.serve(connection)
    while server.listener is not None:
        with server.listener.accept() as connection:
            server.serve(connection)


if __name__ == "__main__":
    main()
