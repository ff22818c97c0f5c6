"""`loko serve`: put the service together, run it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from loko.admission import Terms
from loko.control.access import AccessList
from loko.control.address import Address
from loko.control.driver import driver_of
from loko.control.entries import padding_entries
from loko.control.lab_access import access_list, is_loopback
from loko.control.relay import Listening, interpreter
from loko.control.tls_files import TlsFiles
from loko.document import InputError
from loko.service.admitter import SchemeAdmitter
from loko.service.call_protocol import RestSettings
from loko.service.calls import Calls
from loko.service.connections import OWN_FILES, ClientLimits
from loko.service.events import EventFeed
from loko.service.flow_manager import FlowManager
from loko.service.history import EventLog
from loko.service.hosts import KnownHosts
from loko.service.journal import LogFormat
from loko.service.migration import Migration, migration
from loko.service.outcome import AdmissionMode, ReturnMode
from loko.service.promises import Grounds
from loko.service.rest_process import RestProcess
from loko.service.run import ServiceLoop
from loko.service.sidecar import Sidecar
from loko.service.slots import SlotAdmitter
from loko.service.store import Store
from loko.service.store_file import reading
from loko.service.systemd import Systemd
from loko.service.views import ServiceInfo
from loko.switch_model.control_traffic import COMPARISON_S
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab, stays_loaded
from loko.units import NS_PER_MS, NS_PER_S
from loko.user_error import ENVIRONMENT_FAULT, EnvironmentFaultError

_LOG: Final = logging.getLogger("loko.service")
_GRACE_NS: Final = 250_000_000
"""A sidecar's hosts hear of a flow's removal together with the service, and need some time to stop."""
_TOKEN_CHARACTERS: Final = 16
"""A shorter token could be guessed."""
_TURN_S: Final = 0.0005
"""How long a thread may keep the interpreter from another. At each statement of a transaction, the disk's
thread waits for the event loop's. With Python's default of 5 ms, a busy loop would make a commit take tens of
milliseconds."""


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """How a lab is served."""

    lab: Lab
    admitter: SchemeAdmitter | SlotAdmitter
    terms: Terms
    """Terms of the conditions of guarantees."""
    options: dict[str, str]
    """The options that guarantees depend on. Flows in the store must have been granted with the same ones."""
    store: Path
    rest: str = "127.0.0.1:8080"
    allow_hosts: tuple[str, ...] = ()
    """Names by which clients may address the service, beside its own address and those of loopback."""
    listen: str = "127.0.0.1:6633"
    """Address and port for switches."""
    tls_listen: str | None = None
    """Address and port for switches that use TLS, which needs `tls_files`."""
    tls_files: TlsFiles | None = None
    openflow: OpenFlow = OpenFlow.V1_0
    """OpenFlow version of the switches' sessions, which guarantees depend on."""
    framework: str = "os-ken"
    framework_python: str | None = None
    token: str | None = None
    requests_per_s: float = 1000.0
    connections: int = 512
    """The most connections of clients."""
    changes_per_s: float = 0.0
    """Changes per second that a switch gets; 0 for as many as it takes."""
    compare_s: float = 0.0
    """How often tables of boards are compared again; 0: never. The admission scheme must have been told."""
    reroute_s: float | None = None
    """Time after which flows across a dead cable move to another path; None: they wait for the cable."""
    returns: ReturnMode = ReturnMode.AUTOMATIC
    """When flows leave backup paths; the admitter says whether they have any."""
    padding: int = 0
    """Entries in every table that no frame hits. The admission scheme must have been told."""
    delete_foreign_entries: bool = False
    openflow_place: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """The context to enter while the OpenFlow socket is made: where the switches are."""
    sidecar: Callable[[str], Sequence[str]] | None = None
    """Returns, for the OpenFlow address, the command of a program to run beside: emulated boards, taps."""
    emulates: bool = False
    """Whether the sidecar emulates the lab's boards, in which clients may cause faults."""
    measures: str | None = None
    """The sidecar's instrument for delays, in words; None if it does not measure."""
    log_format: LogFormat = LogFormat.TEXT
    verbose: bool = False
    migration: Migration | None = None
    """Handling of stored flows that were granted under other conditions."""

    @property
    def circumstances(self) -> dict[str, str]:
        """Identity of the store: the lab and the options."""
        return {"lab": self.lab.name, **self.options}

    @property
    def conditions(self) -> tuple[str, ...]:
        """Ids of the conditions on which guarantees hold."""
        return self.admitter.conditions.ids(self.terms)


def migration_of(settings: ServiceSettings) -> Migration:
    """Return what would become of the store's flows if they were served like this. Raises `InputError`."""
    with reading(settings.store) as (_, held):
        pass
    schedule = held.options.get("schedule")
    if schedule != settings.options.get("schedule"):
        raise InputError(
            f"store {settings.store}: flows cannot be migrated between schedules, or from or to one: its"
            " hosts were told when to send; release them, and request them again"
        )
    grounds = Grounds.of(settings.lab, settings.conditions)
    now_ms = time.time_ns() // NS_PER_MS
    return migration(held, settings.admitter, grounds, settings.circumstances, now_ms=now_ms)


def serve(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises `InputError` in one line, before anything has begun."""
    rest_address = Address.parse(settings.rest, "--rest", any_port=True)
    openflow_address = Address.parse(settings.listen, "--listen", any_port=True)
    if settings.token is None and not is_loopback(rest_address.host):
        raise InputError(
            f"--rest {settings.rest}: whoever reaches it could change flows; give a token by --token-file, or"
            " listen on 127.0.0.1"
        )
    interpreter(settings.framework, settings.framework_python)
    access = access_list(settings.lab, listen=openflow_address.host)
    _check_access(settings, access)
    KnownHosts(rest_address.host, settings.allow_hosts)  # refuses wrong ones
    files = _files_allowed(settings.connections + OWN_FILES)
    ClientLimits.of(settings.connections, files=files)  # refuses too few
    of_rest = RestSettings(
        host=rest_address.host,
        allow_hosts=settings.allow_hosts,
        token=settings.token,
        requests_per_s=settings.requests_per_s,
        connections=settings.connections,
        files=files,
        gives_slots=isinstance(settings.admitter, SlotAdmitter),
        emulates=settings.emulates,
        log_format=settings.log_format,
        verbose=settings.verbose,
    )
    sys.setswitchinterval(_TURN_S)
    with contextlib.ExitStack() as open_:
        rest = open_.enter_context(_listening("--rest", rest_address))
        with settings.openflow_place():
            plain = open_.enter_context(_listening("--listen", openflow_address))
            tls = None
            if settings.tls_listen is not None:
                tls_address = Address.parse(settings.tls_listen, "--tls-listen", any_port=True)
                tls = open_.enter_context(_listening("--tls-listen", tls_address))
        openflow = Listening(plain=plain, tls=tls, tls_files=settings.tls_files)
        store = open_.enter_context(
            Store(
                settings.store,
                lab=settings.lab.name,
                options=settings.options,
                migration=settings.migration,
            )
        )
        stays_loaded()
        service = _Service(settings, of_rest, access)
        uvloop.run(service.run(_manager(settings, store), store, rest, openflow))


def _check_access(settings: ServiceSettings, access: AccessList) -> None:
    """Raise `InputError` if switches need TLS in vain. Warn of switches that anybody could claim to be."""
    if settings.tls_files is None:
        by_tls = [switch.name for switch in settings.lab.switches.values() if switch.certificate is not None]
        if by_tls:
            raise InputError(
                f"{', '.join(by_tls)}: must connect by TLS, as the lab says: give --tls-listen, --tls-cert,"
                " --tls-key and --tls-ca"
            )
    if access.open_to_all:
        _LOG.warning(
            "%s: may connect from any address; give their `addresses` in the lab's file (docs/service.md)",
            ", ".join(access.open_to_all),
        )


def _manager(settings: ServiceSettings, store: Store) -> FlowManager:
    lab, admitter = settings.lab, settings.admitter
    # The next segment confirms a change, so each change takes two segments.
    pace_ns = round(NS_PER_S / 2 / settings.changes_per_s) if settings.changes_per_s else 0
    drivers = {
        name: driver_of(
            switch,
            openflow=settings.openflow,
            delete_foreign_entries=settings.delete_foreign_entries,
            pace_ns=pace_ns,
            # No other switch's agent takes anything from its flows.
            compare_ns=round(NS_PER_S * (settings.compare_s if switch.backend.is_board else COMPARISON_S)),
        )
        for name, switch in lab.switches.items()
    }
    if isinstance(admitter, SlotAdmitter) and store.begin(admitter.digest, admitter.initial_flows):
        _LOG.info("%s: its flows are taken up from the schedule", lab.name)
    return FlowManager(
        lab,
        admitter,
        drivers,
        now_ns=time.monotonic_ns(),
        stored=store.load(),
        backlogs=store.backlogs(),
        last_number=store.last_number(),
        padding=padding_entries(lab, settings.padding),
        grace_ns=_GRACE_NS if settings.sidecar is not None else 0,
        openflow=settings.openflow,
        conditions=settings.conditions,
        reroute_ns=None if settings.reroute_s is None else round(settings.reroute_s * NS_PER_S),
        returns=settings.returns,
        utc_less_now_ns=time.time_ns() - time.monotonic_ns(),
    )


class _Service:
    """A service from its start to its end."""

    def __init__(self, settings: ServiceSettings, of_rest: RestSettings, access: AccessList) -> None:
        self._settings = settings
        self._access = access
        self._of_rest = of_rest
        self._failures: list[str] = []
        self._is_over = asyncio.Event()

    async def run(self, manager: FlowManager, store: Store, rest: socket.socket, openflow: Listening) -> None:
        """Run until SIGTERM or Ctrl-C. End the program with status 1 if the service cannot go on."""
        settings = self._settings
        operation = ServiceLoop(
            manager, store, fatal=self._fatal, history=EventLog(store.notes()), access=self._access
        )
        python = interpreter(settings.framework, settings.framework_python)
        await operation.start(openflow, settings.framework, python)
        view = ServiceInfo(
            grants=AdmissionMode.SLOTS if self._of_rest.gives_slots else AdmissionMode.ADMISSION,
            options=settings.options,
            terms=settings.terms,
            needs_token=settings.token is not None,
            measures=settings.measures,
            emulates=settings.emulates,
        )
        systemd = Systemd()

        if baseline := manager.admitter.conditions.baseline:
            _LOG.warning(
                "%s: scheme %s is a baseline, %s", manager.lab.name, manager.admitter.scheme, baseline
            )

        def ready() -> None:
            where = _text_of(rest)
            _LOG.info(
                "%s: page at http://%s, REST at http://%s/docs, %d flows",
                *(manager.lab.name, where, where, len(manager.flows)),
            )
            systemd.ready(operation.is_responsive)

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._is_over.set)
        sidecar = Sidecar(operation, measures=settings.measures is not None)
        calls, feed = Calls(operation, settings.admitter, view, sidecar), EventFeed(operation)
        rest_process = RestProcess(self._of_rest, rest, calls, feed, ready=ready)
        try:
            if settings.sidecar is not None:
                await sidecar.start(settings.sidecar(_text_of(openflow.plain)))
            await rest_process.start()
            await self._is_over.wait()
        finally:
            systemd.ending()
            operation.interrupt(self._why)
            await rest_process.end()
            await sidecar.end()
            await operation.end()
        if self._failures:
            raise SystemExit(1)

    @property
    def _why(self) -> str:
        return self._failures[0] if self._failures else "the service ends"

    def _fatal(self, text: str) -> None:
        self._failures.append(text)
        _LOG.critical("%s; ending", text)
        self._is_over.set()


def _files_allowed(wanted: int) -> int:
    """Ask for this many open files, and return how many the process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def _text_of(listening: socket.socket) -> str:
    return str(Address(*listening.getsockname()[:2]))


def _listening(option: str, address: Address) -> socket.socket:
    try:
        family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
        return socket.create_server(address, family=family, backlog=1024)
    except OSError as error:
        text = error.strerror or str(error)
        if error.errno in ENVIRONMENT_FAULT:
            raise EnvironmentFaultError(f"{option}: cannot listen on {address} now: {text}") from None
        raise InputError(
            f"{option}: cannot listen on {address}: {text}; end what uses it or choose another"
        ) from None


def read_tls(
    listen: str | None, *, certificate: Path | None, key: Path | None, authority: Path | None
) -> TlsFiles | None:
    """Return the files of the options --tls-cert, --tls-key and --tls-ca, which --tls-listen needs.

    Raises `InputError` for some without the others, and for files that do not go together.
    """
    if listen is None and certificate is None and key is None and authority is None:
        return None
    if listen is None or certificate is None or key is None or authority is None:
        raise InputError("--tls-listen, --tls-cert, --tls-key and --tls-ca: give all of them, or none")
    for option, path in (("--tls-cert", certificate), ("--tls-key", key), ("--tls-ca", authority)):
        if not os.access(path, os.R_OK):
            raise InputError(f"{option} {path}: cannot be read")
    files = TlsFiles(certificate=str(certificate), key=str(key), authority=str(authority))
    try:
        files.context()
    except OSError as error:
        raise InputError(
            f"--tls-cert {certificate}, --tls-key {key}, --tls-ca {authority}: are not a certificate, its key"
            f" and an authority's certificate in PEM: {error}"
        ) from None
    return files


def read_token(path: Path | None) -> str | None:
    """Return the token from a file, or from the environment variable LOKO_TOKEN; None if there is none.

    Raises `InputError` if it cannot be read, or is too short.
    """
    if path is None:
        token, where = os.environ.get("LOKO_TOKEN", "").strip(), "$LOKO_TOKEN"
        if not token:
            return None
    else:
        where = f"--token-file {path}"
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{where}: cannot be read: {error}") from None
    if len(token) < _TOKEN_CHARACTERS:
        raise InputError(f"{where}: has {len(token)} characters; give at least {_TOKEN_CHARACTERS}")
    return token
