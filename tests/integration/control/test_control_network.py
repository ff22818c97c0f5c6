"""Attacks on the controller from the control network: impostors, and more connections than switches need."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import psutil
import pytest
from scripted_board import ScriptedBoard
from served_lab import ServedLab
from test_controller_app import DATAPATHS, FLOWS, TIMEOUT_S, Controller, wait_for

from loko.control.access import AccessList, Peer, SwitchAccess
from loko.control.lab_access import access_list
from loko.control.session_limits import HANDSHAKE_S, NoFreeSessionError, SessionLimiter, SessionSlot
from loko.document import LABS, InputError
from loko.topology.lab import load_lab

BOARD, ELSEWHERE = "127.0.0.1", "127.0.0.2"
SOURCE = (LABS / "two-switch" / "lab.yml").read_text()
IDLE = 1500
"""Connections of the attacker. Each made two threads where nothing limited them."""


def lab_with(folder: Path, s1: str, s2: str = "") -> Path:
    """Write the two-switch lab with further keys of its switches."""
    head, tail = SOURCE.split("  s2:\n")
    text = head.replace("  s1:\n", f"  s1:\n{s1}") + f"  s2:\n{s2}" + tail
    (folder / "lab.yml").write_text(text)
    return folder / "lab.yml"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Controller]:
    with started(tmp_path) as controller:
        yield controller


@contextlib.contextmanager
def started(folder: Path, *options: str, flows: object = FLOWS) -> Iterator[Controller]:
    controller = Controller(folder, *options, flows=flows)
    try:
        yield controller
    finally:
        controller.process.kill()
        controller.process.wait()
        controller.port.release()


def set_up(controller: Controller) -> list[ScriptedBoard]:
    boards = [controller.board(datapath_id) for datapath_id in DATAPATHS]
    wait_for(controller.ready.exists, "the ready file")
    return boards


def application(controller: Controller) -> psutil.Process:
    [shim] = psutil.Process(controller.process.pid).children()
    return shim


def answered(board: ScriptedBoard) -> int:
    """Return how many messages the board has got: its session lives as long as that grows."""
    return len(board.messages)


def test_an_impostor_from_elsewhere_does_not_take_a_switch_over(running: Controller) -> None:
    boards = set_up(running)
    impostor = ScriptedBoard(running.address, DATAPATHS[0], source=ELSEWHERE)
    assert impostor.closed.wait(TIMEOUT_S)
    assert impostor.table == []
    before = answered(boards[0])
    wait_for(lambda: answered(boards[0]) > before, "another heartbeat")
    assert not boards[0].closed.is_set()
    assert running.ready.exists()
    assert f"refused {ELSEWHERE} as s1, which is connected from {BOARD}" in running.log.read_text()


def test_a_newcomer_from_the_same_address_is_refused_while_the_session_answers(running: Controller) -> None:
    boards = set_up(running)
    newcomer = ScriptedBoard(running.address, DATAPATHS[0])
    assert newcomer.closed.wait(TIMEOUT_S)
    assert newcomer.table == []
    assert not boards[0].closed.is_set()
    told = f"refused {BOARD} as s1: its session goes on"
    wait_for(lambda: told in running.log.read_text(), "the line that says why")


def test_a_newcomer_from_the_same_address_replaces_a_session_that_answers_no_more(
    running: Controller,
) -> None:
    """As after a reboot of a board, which does not end its old session."""
    boards = set_up(running)
    boards[0].answers = False
    again = ScriptedBoard(running.address, DATAPATHS[0])
    wait_for(lambda: len(again.table) == 17, "the new table")
    assert boards[0].closed.wait(TIMEOUT_S)
    wait_for(running.ready.exists, "the ready file again")
    assert not again.closed.is_set()


def test_a_switch_that_may_not_connect_from_there_gets_no_session(tmp_path: Path) -> None:
    lab = lab_with(tmp_path, f"    addresses: [{BOARD}]\n")
    with started(tmp_path, "--lab", str(lab)) as controller:
        controller.board(DATAPATHS[1])
        impostor = ScriptedBoard(controller.address, DATAPATHS[0], source=ELSEWHERE)
        assert impostor.closed.wait(TIMEOUT_S)
        assert impostor.table == []
        wait_for(lambda: "s1 may" in controller.log.read_text(), "the line")
        assert "as datapath 0x000070b3d56c0001: s1 may not connect from there" in controller.log.read_text()
        board = controller.board(DATAPATHS[0])
        wait_for(lambda: len(board.table) == 17, "its table")


def test_a_board_that_the_cabling_calls_real_is_taken_from_its_configured_address_only(
    tmp_path: Path,
) -> None:
    cabling = tmp_path / "cabling.yml"
    cabling.write_text("switches:\n  s1: {1: a0, 2: a1, 4: a3}\n  s2: {1: b0, 2: b1, 4: b3}\n")
    lab = lab_with(tmp_path, "")
    text = lab.read_text().replace("10.0.1.99", "127.0.0.9").replace("10.0.1.100", "127.0.0.10")
    lab.write_text(text.replace("controller: 10.0.1.8/24", "controller: 127.0.0.8/24"))
    options = ["--lab", str(lab), "--cabling", str(cabling)]
    with started(tmp_path, *options, flows=FLOWS[:1]) as controller:
        controller.board(DATAPATHS[1], source="127.0.0.10")
        impostor = ScriptedBoard(controller.address, DATAPATHS[0], source=ELSEWHERE)
        assert impostor.closed.wait(TIMEOUT_S)
        board = ScriptedBoard(controller.address, DATAPATHS[0], source="127.0.0.9")
        wait_for(lambda: len(board.table) == 17, "its table")
        assert impostor.table == []


def test_an_address_of_no_switch_gets_not_even_a_handshake(tmp_path: Path) -> None:
    addresses = f"    addresses: [{BOARD}]\n"
    with started(tmp_path, "--lab", str(lab_with(tmp_path, addresses, addresses))) as controller:
        set_up(controller)
        stranger = ScriptedBoard(controller.address, DATAPATHS[0], source=ELSEWHERE)
        assert stranger.closed.wait(TIMEOUT_S)
        assert stranger.messages == []
        wait_for(lambda: f"refused {ELSEWHERE}: no switch" in controller.log.read_text(), "the line")


@pytest.mark.parametrize("source", [BOARD, ELSEWHERE])
def test_idle_connections_cost_few_threads_and_no_session(running: Controller, source: str) -> None:
    boards = set_up(running)
    shim = application(running)
    usual = shim.num_threads()
    most = usual
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft + 2 * IDLE), hard))
    with contextlib.ExitStack() as idle:
        for number in range(IDLE):
            connection = socket.create_connection(running.address, source_address=(source, 0))
            idle.enter_context(connection)
            if number % 100 == 99:
                most = max(most, shim.num_threads())
        before = answered(boards[1])
        wait_for(lambda: answered(boards[1]) > before, "another heartbeat")
        most = max(most, shim.num_threads())
        assert most - usual <= 3 * 2 * (2 * 2 + 8), f"{most} threads"  # of each connection, and of its end
        boards[0].vanish()
        again = ScriptedBoard(running.address, DATAPATHS[0])  # it still finds a place
        wait_for(lambda: len(again.table) == 17, "its table")
        assert not boards[1].closed.is_set()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert f"refused {source}: what says nothing makes room" in running.log.read_text()


def test_garbage_ends_one_connection_in_one_line(running: Controller) -> None:
    boards = set_up(running)
    with socket.create_connection(running.address, source_address=(ELSEWHERE, 0)) as connection:
        connection.sendall(bytes.fromhex("010600080000000101050008") + b"\xff" * 64)
        connection.settimeout(TIMEOUT_S)
        with contextlib.suppress(ConnectionError):
            while connection.recv(4096):
                pass
    before = answered(boards[0])
    wait_for(lambda: answered(boards[0]) > before, "another heartbeat")
    assert "Traceback" not in running.log.read_text()


# In the service: what clients see.


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with ServedLab(tmp_path_factory.mktemp("served")) as lab:
        yield lab


def notes(lab: ServedLab) -> list[str]:
    found: list[dict[str, Any]] = lab.client.get("/v1/notes").json()["notes"]
    return [note["text"] for note in found]


@pytest.mark.parametrize("source", [BOARD, ELSEWHERE])
def test_an_impostor_takes_no_switch_over(served: ServedLab, source: str) -> None:
    served.begin_log()
    assert served.post(1).status_code == 201
    impostor = ScriptedBoard(("127.0.0.1", served.openflow), DATAPATHS[0], source=source)
    assert impostor.closed.wait(TIMEOUT_S)
    assert impostor.table == []
    wait_for(lambda: any(f"refused {source}" in text for text in notes(served)), "the note")
    assert f"refused {source}" in served.log()
    assert served.is_healthy()
    assert served.post(2).status_code == 201  # the switch itself has confirmed it
    assert "s1: disconnected" not in served.log()
    served.release_all()


def test_nobody_else_is_a_switch_while_that_is_away(served: ServedLab) -> None:
    served.switch_off()
    wait_for(lambda: not served.is_healthy(), "the boards to be missed")
    impostor = ScriptedBoard(("127.0.0.1", served.openflow), DATAPATHS[0], source=ELSEWHERE)
    assert impostor.closed.wait(TIMEOUT_S)
    assert impostor.messages == []  # not even a handshake
    served.switch_on()
    served.wait_healthy()


# Decisions, without sockets.


def peer(address: str, port: int = 1000, near: str = "10.0.1.8", **values: object) -> Peer:
    found = Peer.of((address, port), (near, 6633))
    return Peer(**{**found.to_json(), **values})  # type: ignore[arg-type]


def test_a_real_board_connects_from_its_configured_address_only(tmp_path: Path) -> None:
    cabling = tmp_path / "cabling.yml"
    cabling.write_text("switches:\n  s1: {1: a0, 2: a1, 3: a2, 4: a3}\n")
    lab = load_lab("two-switch", cabling)
    real, emulated = DATAPATHS
    for listen in ("0.0.0.0", "10.0.1.8", None):
        access = access_list(lab, listen=listen)
        assert access.refusal(real, peer("10.0.1.99")) is None
        for address in ("10.0.1.98", "127.0.0.1", "10.0.1.8"):
            assert "s1 may not connect from there" in str(access.refusal(real, peer(address)))
    access = access_list(lab, listen="0.0.0.0")
    for address in ("10.0.1.100", "127.0.0.1", "10.0.1.8"):  # its own, and this machine's
        assert access.refusal(emulated, peer(address)) is None
    assert access.refusal(emulated, peer("10.0.1.99")) is not None


def test_addresses_of_the_lab_are_all_that_count(tmp_path: Path) -> None:
    lab = load_lab(lab_with(tmp_path, '    addresses: [192.168.0.0/30, "2001:db8::7"]\n'))
    access = access_list(lab, listen="0.0.0.0")
    for address in ("192.168.0.1", "::ffff:192.168.0.2", "2001:db8::7"):
        assert access.refusal(DATAPATHS[0], peer(address)) is None
    for address in ("192.168.0.4", "10.0.1.99", "127.0.0.1", "2001:db8::8"):
        assert access.refusal(DATAPATHS[0], peer(address)) is not None


def test_wrong_addresses_are_one_line(tmp_path: Path) -> None:
    for wrong in ("10.0.1.0/33", "board", "10.0.1.99/24"):
        with pytest.raises(InputError, match="neither an address nor a network"):
            load_lab(lab_with(tmp_path, f"    addresses: [{wrong}]\n"))
    lab = lab_with(tmp_path, "")
    lab.write_text(lab.read_text().replace("ip_address: 10.0.1.99", "ip_address: board"))
    with pytest.raises(InputError, match="ip_address: 'board' is no such setting: invalid IPv4 address"):
        load_lab(lab)


def test_a_switch_of_unknown_address_is_open_to_all_only_beyond_loopback() -> None:
    lab = load_lab("ring")
    assert access_list(lab, listen="127.0.0.1").open_to_all == ()
    assert len(access_list(lab, listen="0.0.0.0").open_to_all) == 31
    assert access_list(load_lab("two-switch"), listen="0.0.0.0").open_to_all == ()


def test_a_certificate_belongs_to_one_switch(tmp_path: Path) -> None:
    access = access_list(load_lab(lab_with(tmp_path, "    certificate: s1.example\n")), listen="0.0.0.0")
    assert "must connect by TLS" in str(access.refusal(DATAPATHS[0], peer("10.0.1.99")))
    other = peer("10.0.1.99", certificate=("s2.example",))
    assert "is not that of s1" in str(access.refusal(DATAPATHS[0], other))
    own = peer("10.0.1.99", certificate=("s1.example",))
    assert access.refusal(DATAPATHS[0], own) is None
    assert access.refusal(DATAPATHS[0], peer("10.0.1.98", certificate=("s1.example",))) is not None


ONE = AccessList({1: SwitchAccess(name="s1", networks=(ip_network("10.0.0.1"),))})
A_SWITCH_MAY_HAVE = 2 + 8


def filled(limits: SessionLimiter, count: int, address: str = "10.0.0.1") -> list[SessionSlot]:
    return [limits.take(peer(address, number), float(number)) for number in range(count)]


def test_the_longest_silent_connection_makes_room() -> None:
    limits = SessionLimiter(ONE)
    newcomer = peer("10.0.0.1")
    places = filled(limits, A_SWITCH_MAY_HAVE - 1)
    assert limits.blocking(newcomer) is None
    places += filled(limits, 1)
    places[0].is_introduced = True
    assert limits.blocking(newcomer) is places[9]  # it came at 0 s
    limits.free(places[9])
    assert limits.blocking(newcomer) is None


def test_no_session_makes_room() -> None:
    limits = SessionLimiter(ONE)
    for place in filled(limits, A_SWITCH_MAY_HAVE):
        place.is_introduced = True
    with pytest.raises(NoFreeSessionError):
        limits.blocking(peer("10.0.0.1"))


def test_all_addresses_together_are_limited_and_the_largest_crowd_makes_room() -> None:
    anybody = AccessList({1: SwitchAccess(name="s1", networks=None)})
    limits = SessionLimiter(anybody)
    crowd = filled(limits, A_SWITCH_MAY_HAVE, "10.0.0.66")
    for number in range(limits.in_all - len(crowd)):
        newcomer = peer(f"10.0.1.{number}")
        assert limits.blocking(newcomer) is None
        limits.take(newcomer, 100.0)
    assert len(limits) == limits.in_all == 2 + 8 * 8
    assert limits.blocking(peer("10.0.0.1")) is crowd[0]


def test_who_does_not_introduce_himself_is_overdue() -> None:
    limits = SessionLimiter(ONE)
    silent, introduced = filled(limits, 2)
    introduced.is_introduced = True
    assert limits.overdue(HANDSHAKE_S - 1) == []
    assert limits.overdue(HANDSHAKE_S) == [silent]


def test_a_silent_connection_is_closed(running: Controller) -> None:
    set_up(running)
    with socket.create_connection(running.address) as connection:
        connection.settimeout(TIMEOUT_S)
        since = time.monotonic()
        while connection.recv(4096):
            pass
        assert time.monotonic() - since > HANDSHAKE_S / 2  # not at once
    line = f"refused {BOARD}: it said nothing for 10 s"
    wait_for(lambda: line in running.log.read_text(), "the line")
