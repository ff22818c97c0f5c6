"""`loko serve`: put the service together, run it, end it."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
import uvloop

from loko.admission import Admission
from loko.controller.driver import driver_of
from loko.controller.relay import interpreter
from loko.document import InputError
from loko.entries import filler_entries
from loko.lab import Lab
from loko.serve.api import application
from loko.serve.companion import Companion
from loko.serve.guard import Guard
from loko.serve.keeper import FlowKeeper
from loko.serve.run import Operation
from loko.serve.store import Store
from loko.serve.views import ServiceView

_LOG: Final = logging.getLogger("loko.serve")
_NS_PER_S: Final = 1e9
_GRACE_NS: Final = 250_000_000
"""Hosts of a companion hear that a flow is to go when the service does, and need some time to stop."""
_TURN_S: Final = 0.0005
"""How long a thread may keep the interpreter from another. At each statement of a transaction the disk's
thread waits for the event loop's; at Python's own 5 ms, a busy loop would make a commit take tens of them."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a lab is served."""

    lab: Lab
    admission: Admission
    options: dict[str, str]
    """What the guarantees depend on; flows in the store were admitted with the same."""
    store: Path
    rest: str = "127.0.0.1:8080"
    openflow: str = "127.0.0.1:6633"
    framework: str = "os-ken"
    framework_python: str | None = None
    token: str | None = None
    requests_per_s: float = 1000.0
    changes_per_s: float = 0.0
    """Changes that a switch gets a second; 0 for as many as it takes."""
    fillers: int = 0
    """Entries in every table that no frame hits; admission knows of them."""
    delete_strangers: bool = False
    openflow_place: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """Where the switches are: what to enter while the OpenFlow socket is made."""
    companion: Callable[[str], Sequence[str]] | None = None
    """Command of a program to run beside, given the OpenFlow address: emulated boards, taps."""
    measures: str | None = None
    """What the companion measures delays with, in words; none if it does not."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises `InputError`; one line, before anything has begun."""
    rest_host, rest_port = address(settings.rest, "--rest")
    openflow_host, openflow_port = address(settings.openflow, "--openflow")
    if settings.token is None and not _is_loopback(rest_host):
        raise InputError(
            f"--rest {settings.rest}: whoever reaches it could change flows; give a token by --token-file, or"
            " listen on 127.0.0.1"
        )
    interpreter(settings.framework, settings.framework_python)
    sys.setswitchinterval(_TURN_S)
    with contextlib.ExitStack() as open_:
        rest = open_.enter_context(_listening("--rest", rest_host, rest_port))
        with settings.openflow_place():
            openflow = open_.enter_context(_listening("--openflow", openflow_host, openflow_port))
        store = open_.enter_context(Store(settings.store, lab=settings.lab.name, options=settings.options))
        with contextlib.suppress(KeyboardInterrupt):  # the server says so once it has ended in good order
            uvloop.run(_serve(settings, _keeper(settings, store), store, rest, openflow))


def _keeper(settings: Settings, store: Store) -> FlowKeeper:
    lab, admission = settings.lab, settings.admission
    # A change is confirmed by the next segment, so it takes two.
    pace_ns = round(_NS_PER_S / 2 / settings.changes_per_s) if settings.changes_per_s else 0
    drivers = {
        name: driver_of(switch, delete_strangers=settings.delete_strangers, pace_ns=pace_ns)
        for name, switch in lab.switches.items()
    }
    return FlowKeeper(
        lab,
        admission,
        drivers,
        now_ns=time.monotonic_ns(),
        stored=store.load(),
        debts=store.debts(),
        last_number=store.last_number(),
        fillers=filler_entries(lab, settings.fillers),
        grace_ns=_GRACE_NS if settings.companion is not None else 0,
    )


async def _serve(
    settings: Settings,
    keeper: FlowKeeper,
    store: Store,
    rest: socket.socket,
    openflow: socket.socket,
) -> None:
    server: uvicorn.Server | None = None
    failures: list[str] = []

    def fatal(text: str) -> None:
        failures.append(text)
        _LOG.critical("%s; ending", text)
        if server is not None:
            server.should_exit = True

    operation = Operation(keeper, store, fatal=fatal)
    python = interpreter(settings.framework, settings.framework_python)
    await operation.switches.start(openflow, settings.framework, python)
    view = ServiceView(
        options=settings.options, needs_token=settings.token is not None, measures=settings.measures
    )
    guarded = Guard(
        application(operation, view),
        token=settings.token,
        requests_per_s=settings.requests_per_s,
    )
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,  # the limit goes by the address that is really there
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    companion = Companion(operation, measures=settings.measures is not None)
    if settings.companion is not None:
        await companion.start(settings.companion(_text_of(openflow)))
    where = _text_of(rest)
    _LOG.info(
        "%s: page at http://%s, REST at http://%s/docs, %d flows",
        *(keeper.lab.name, where, where, len(keeper.promises)),
    )
    try:
        await server.serve(sockets=[rest])
    finally:
        await companion.end()
        await operation.end()
    if failures:
        raise SystemExit(1)


def _text_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address(text: str, option: str) -> tuple[str, int]:
    """The parts of `127.0.0.1:8080`. Raises `InputError`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InputError(f"{option} '{text}' is not an address and a port such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(option: str, host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        text = error.strerror or str(error)
        raise InputError(
            f"{option}: cannot listen on {host}:{port}: {text}; end what uses it or choose another"
        ) from None


def read_token(path: Path | None) -> str | None:
    """The token of a file, or of the environment variable LOKO_TOKEN, or none. Raises `InputError`."""
    if path is None:
        return os.environ.get("LOKO_TOKEN") or None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {path}: cannot be read: {error}") from None
    if len(token) < 16:
        raise InputError(f"--token-file {path}: has {len(token)} characters; give at least 16")
    return token
