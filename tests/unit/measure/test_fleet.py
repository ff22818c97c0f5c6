"""The fleet that measures controllers, against a scripted controller."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from loko.control.framing import whole_messages
from loko.document import InputError
from loko_testbed.cli.bench.controller import flat, table
from loko_testbed.cli.bench.procedures import bench_app
from loko_testbed.measure.controllers.results import FleetResult, rate_per_s, times
from loko_testbed.simulation.runner import RunError

HELLO, FEATURES_REQUEST = bytes.fromhex("0100000800000001"), bytes.fromhex("0105000800000002")
SOURCE = slice(18 + 6, 18 + 12)


class Scripted:
    """A controller that answers each unicast PACKET_IN with a FLOW_MOD, except every `ignores`th."""

    def __init__(self, ignores: int | None = None, *, deaf: int = 0, answers: int | None = None) -> None:
        self.ignores = ignores
        self.deaf = deaf
        """This many broadcasts go unanswered, as in OpenFlow 1.3 before a board may ask."""
        self.answers = answers
        """After this many FLOW_MODs it sends no more."""
        self.packet_ins = self.sessions = 0

    async def session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # boards may disconnect at any time
            try:
                await self._answer(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO)
        pending = b""
        has_greeted = False
        while data := await reader.read(65536):
            messages, pending = whole_messages(pending + data)
            for message in messages:
                if message[1] == 0 and not has_greeted:
                    has_greeted = True
                    self.sessions += 1
                    writer.write(FEATURES_REQUEST)
                elif message[1] == 10:
                    self._packet_in(message, writer)

    def _packet_in(self, message: bytes, writer: asyncio.StreamWriter) -> None:
        frame = message[18:]
        if frame[:6] == b"\xff" * 6:  # a broadcast: flood it
            self.deaf -= 1
            if self.deaf >= 0:
                return
            flood = bytes.fromhex("00000008fffb0000")
            header = bytes.fromhex("010d") + (16 + 8 + len(frame)).to_bytes(2, "big") + bytes(4)
            writer.write(header + b"\xff" * 4 + message[14:16] + b"\x00\x08" + flood + frame)
            return
        self.packet_ins += 1
        if self.ignores and self.packet_ins % self.ignores == 0:
            return
        if self.answers is not None and self.packet_ins > self.answers:
            return
        match = (0x3820F3).to_bytes(4, "big") + message[14:16] + message[SOURCE] + bytes(28)
        fields = bytes(12) + bytes(2) + b"\x80\x00" + b"\xff\xff\xff\xff\xff\xff" + bytes(2)
        body = match + fields + bytes.fromhex("0000000800010000")
        writer.write(bytes.fromhex("010e") + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body)

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Run the controller and yield its address, as the command takes it."""
        loop = asyncio.new_event_loop()
        begun, stopped = Event(), asyncio.Event()
        where: list[int] = []

        async def serve() -> None:
            server = await asyncio.start_server(self.session, "127.0.0.1", 0)
            where.append(server.sockets[0].getsockname()[1])
            begun.set()
            await stopped.wait()
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        thread = Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        begun.wait()
        try:
            yield f"tcp:127.0.0.1:{where[0]}"
        finally:
            loop.call_soon_threadsafe(stopped.set)
            thread.join()
            loop.close()


SMALL = ["--boards", "3", "--rounds", "1", "--one-by-one", "2", "--at-once", "8"]


@pytest.mark.parametrize("cost", [[], ["--free-control"]])
def test_a_controller_that_answers_all_loses_nothing(cost: list[str]) -> None:
    controller = Scripted()
    with controller.listening() as where:
        done = CliRunner().invoke(bench_app, ["controller", "--connect", where, *SMALL, *cost, "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert (values["is_complete"], values["rounds"], values["sessions"]) == (True, 1, 3)
    assert values["control_cost"] == (not cost)
    assert (values["requests"], values["lost"]) == (3 * (2 + 8), 0)
    assert values["processing"]["count"] == 3 * 2
    assert values["loaded"]["count"] == 3 * 8
    assert values["recovery"]["count"] == 1, "half of the fleet"
    assert values["closed_by_controller"] == values["not_recovered"] == 0
    assert controller.sessions == 3 + 1
    assert controller.packet_ins == 3 * (2 + 8) + 1
    assert values["processing"]["p50_ns"] <= values["provisioning"]["p50_ns"], "the frame was there first"
    if not cost:
        work_ns = values["provisioning"]["p50_ns"] - values["processing"]["p50_ns"]
        assert work_ns > 300_000, "a board needs its time for a PACKET_IN"


def test_what_is_not_answered_is_lost() -> None:
    with Scripted(ignores=5).listening() as where:
        words = ["controller", "--connect", where, *SMALL, "--timeout-s", "0.5"]
        done = CliRunner().invoke(bench_app, words)
    assert done.exit_code == 0, done.output
    assert re.search(r"lost +6 of 30 \(20.00 %\)", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_host_repeats_its_broadcast_until_the_controller_answers() -> None:
    with Scripted(deaf=4).listening() as where:
        done = CliRunner().invoke(bench_app, ["controller", "--connect", where, *SMALL, "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert (values["left_out"], values["requests"], values["lost"]) == (0, 3 * (2 + 8), 0)


@pytest.mark.parametrize(
    ("controller", "error"),
    [
        (Scripted(deaf=1_000_000), "no PACKET_OUT for a broadcast of any board; start an application"),
        (Scripted(answers=0), "no FLOW_MOD for 5 frames in a row"),
        (Scripted(answers=1), "no FLOW_MOD for 5 frames in a row"),
    ],
)
def test_a_controller_that_answers_no_more_ends_it(controller: Scripted, error: str) -> None:
    with controller.listening() as where:
        words = ["controller", "--connect", where, *SMALL, "--timeout-s", "0.5"]
        done = CliRunner().invoke(bench_app, words)
    assert isinstance(done.exception, RunError)
    assert error in str(done.exception)


def test_a_controller_that_stops_under_load_is_not_waited_for_frame_by_frame() -> None:
    controller = Scripted(answers=3 * 2)
    with controller.listening() as where:
        words = ["controller", "--connect", where, "--boards", "3", "--rounds", "1", "--one-by-one", "2"]
        words += ["--at-once", "90", "--outstanding", "1", "--timeout-s", "0.5", "--json"]
        done = CliRunner().invoke(bench_app, words)
    values = json.loads(done.stdout)
    assert (values["requests"], values["lost"], values["not_recovered"]) == (3 * (2 + 5), 3 * 5, 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--connect", "10.0.0.1"], "is not an address such as tcp:127.0.0.1:6633"),
        (["--connect", "tcp:127.0.0.1:6633", "--at-once", "99"], "ask for fewer, and more --rounds"),
    ],
)
def test_wrong_input_is_told_in_one_line(words: list[str], error: str) -> None:
    done = CliRunner().invoke(bench_app, ["controller", *words])
    assert isinstance(done.exception, InputError)
    assert error in str(done.exception)


def test_csv_has_a_column_for_each_number() -> None:
    with Scripted().listening() as where:
        done = CliRunner().invoke(bench_app, ["controller", "--connect", where, *SMALL, "--csv"])
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert (row["boards"], row["lost"], row["loaded_count"], row["complaints"]) == ("3", "0", "24", "")
    assert 0 < int(row["processing_p50_ns"]) <= int(row["processing_max_ns"])
    nothing = flat(FleetResult(boards=1, control_cost=True))
    assert list(nothing) == list(row), "the same columns, whatever was reached"
    assert nothing["loaded_p50_ns"] is None


def test_numbers_are_of_nearest_rank() -> None:
    assert times([]) is None
    summed = times(range(1, 101))
    assert summed is not None
    assert (summed.count, summed.min_ns, summed.p50_ns, summed.p99_ns, summed.max_ns) == (100, 1, 50, 99, 100)
    assert rate_per_s([500_000_000, 1_000_000_000], 0) == 2
    assert rate_per_s([], 0) is None


def test_a_table_without_any_number_can_be_printed() -> None:
    assert max(map(len, table(FleetResult(boards=1000, control_cost=True)))) <= 80
