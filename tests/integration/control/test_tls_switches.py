"""Switches that connect by TLS, with scripted switches on loopback and both frameworks."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from scripted_board import ScriptedBoard

from benchmarks.builds import BUILD
from loko.control.access import AccessList, SwitchAccess
from loko.control.relay import Listening, interpreter
from loko.control.switchboard import Switchboard
from loko.control.tls_files import TlsFiles
from loko.control.wire import BarrierReply, BarrierRequest, WireReply
from loko.document import InputError
from loko.service.program import read_tls
from loko.switch_model.scenario import OpenFlow

RYU_PYTHON = BUILD / ".clients" / "python" / "bin" / "python"
TIMEOUT_S = 120
ACCESS = AccessList(
    {
        1: SwitchAccess(name="s1", networks=None, certificate="s1.example"),
        2: SwitchAccess(name="s2", networks=None),
    }
)


@dataclass
class Authority:
    """Signs certificates in a folder."""

    folder: Path
    name: str = "authority"

    def __post_init__(self) -> None:
        self._openssl("req", "-x509", *self._new(self.name), "-out", self.certificate, "-subj", "/CN=CA")

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def sign(self, name: str) -> tuple[Path, Path]:
        """Return a certificate for a name, and its key."""
        request, signed = self.folder / f"{name}.csr", self.folder / f"{name}-by-{self.name}.pem"
        self._openssl("req", *self._new(name), "-out", request, "-subj", f"/O=Loko/CN={name}")
        authority = ("-CA", self.certificate, "-CAkey", self.folder / f"{self.name}.key")
        self._openssl("x509", "-req", "-in", request, *authority, "-CAcreateserial", "-out", signed)
        return signed, self.folder / f"{name}.key"

    def client(self, name: str | None, *, trusts: Path | None = None) -> ssl.SSLContext:
        """Return the context of a switch with such a certificate, or with none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(trusts or self.certificate)
        if name is not None:
            context.load_cert_chain(*self.sign(name))
        return context

    def _new(self, name: str) -> tuple[object, ...]:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        return (*curve, "-keyout", self.folder / f"{name}.key")

    def _openssl(self, *words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@dataclass
class Switches:
    """The switches that have connected, and what became of the others."""

    connected: list[str] = field(default_factory=list)
    replies: list[WireReply] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def switch_connected(self, name: str) -> None:
        self.connected.append(name)

    def switch_replied(self, name: str, reply: WireReply) -> None:
        self.replies.append(reply)

    def switch_disconnected(self, name: str) -> None:
        self.connected.remove(name)

    def connection_refused(self, text: str) -> None:
        self.refused.append(text)

    def application_ended(self, status: int) -> None:
        raise AssertionError(status)


Scenario = Callable[[Switchboard, Switches, tuple[str, int], tuple[str, int]], Awaitable[None]]


def carry_out(authority: Authority, framework: str, scenario: Scenario) -> None:
    """Run a scenario with a switchboard, and the addresses for switches without and with TLS."""
    if framework == "ryu" and not RYU_PYTHON.exists():
        pytest.skip("Ryu 4.34 is not installed: run 'make clients'")
    python = interpreter(framework, str(RYU_PYTHON) if framework == "ryu" else sys.executable)
    certificate, key = authority.sign("controller")
    files = TlsFiles(certificate=str(certificate), key=str(key), authority=str(authority.certificate))

    async def main() -> None:
        switches = Switches()
        board = Switchboard(ACCESS, switches, OpenFlow.V1_0)
        with socket.create_server(("127.0.0.1", 0)) as plain, socket.create_server(("127.0.0.1", 0)) as tls:
            await board.start(Listening(plain=plain, tls=tls, tls_files=files), framework, python)
            try:
                await scenario(board, switches, plain.getsockname(), tls.getsockname())
            finally:
                await board.end()

    asyncio.run(main())


async def wait_for(condition: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.02)
    assert condition(), what


async def connect(address: tuple[str, int], datapath_id: int, tls: ssl.SSLContext | None) -> ScriptedBoard:
    return await asyncio.to_thread(lambda: ScriptedBoard(address, datapath_id, tls=tls))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.parametrize("framework", ["os-ken", "ryu"])
def test_switches_with_and_without_tls_are_served_side_by_side(authority: Authority, framework: str) -> None:
    async def scenario(board, switches, plain, tls):
        await connect(tls, 1, authority.client("s1.example"))
        await connect(plain, 2, None)
        await wait_for(lambda: set(switches.connected) == {"s1", "s2"}, "both")
        for xid in range(1, 201):
            for name in ("s1", "s2"):
                board.send(name, [BarrierRequest(xid)])
            await wait_for(lambda xid=xid: switches.replies[-2:] == [BarrierReply(xid)] * 2, "replies")
        assert switches.refused == []

    carry_out(authority, framework, scenario)


@pytest.mark.parametrize("framework", ["os-ken", "ryu"])
def test_without_its_certificate_nobody_is_the_switch(authority: Authority, framework: str) -> None:
    stranger = Authority(authority.folder, "stranger")

    async def scenario(board, switches, plain, tls):
        told = {
            "must connect by TLS": await connect(plain, 1, None),
            "its certificate is not that of s1": await connect(tls, 1, authority.client("s2.example")),
        }
        for says, impostor in told.items():
            assert await asyncio.to_thread(impostor.closed.wait, TIMEOUT_S)
            await wait_for(lambda says=says: any(says in line for line in switches.refused), says)
        for client in (
            authority.client(None),
            stranger.client("s1.example", trusts=authority.certificate),
        ):
            switches.refused.clear()
            impostor = await connect(tls, 1, client)
            assert await asyncio.to_thread(impostor.closed.wait, TIMEOUT_S)
            assert impostor.messages == []
        assert switches.connected == []
        await connect(tls, 1, authority.client("s1.example"))
        await wait_for(lambda: switches.connected == ["s1"], "the switch itself")

    carry_out(authority, framework, scenario)


def test_who_does_not_speak_tls_gets_no_session(authority: Authority) -> None:
    async def scenario(board, switches, plain, tls):
        impostor = await connect(tls, 2, None)
        assert await asyncio.to_thread(impostor.closed.wait, TIMEOUT_S)
        await wait_for(lambda: switches.refused, "the line")
        assert switches.refused == ["refused 127.0.0.1: it failed in the TLS handshake (SSLError)"]
        assert switches.connected == []

    carry_out(authority, "os-ken", scenario)


def test_files_that_do_not_go_together_are_one_line(authority: Authority) -> None:
    certificate, key = authority.sign("controller")
    _, other = authority.sign("other")
    given = {"certificate": certificate, "key": key, "authority": authority.certificate}
    assert read_tls("127.0.0.1:6653", **given) is not None
    assert read_tls(None, certificate=None, key=None, authority=None) is None
    for changed, says in (
        ({"key": other}, "are not a certificate, its key"),
        ({"key": None}, "give all of them, or none"),
        ({"authority": authority.folder / "none.pem"}, "--tls-ca .*none.pem: cannot be read"),
        ({"authority": key}, "are not a certificate, its key"),
    ):
        with pytest.raises(InputError, match=says) as error:
            read_tls("127.0.0.1:6653", **{**given, **changed})
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="give all of them"):
        read_tls(None, **given)
