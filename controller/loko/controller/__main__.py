"""`python -m loko.controller`: admit the flows of a file and keep the lab's switches set up for them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

import typer

from loko.address import Address
from loko.admission import Admission
from loko.allocation import FIFTH_RATE
from loko.commands.choices import EntriesOption, OpenFlowOption, wrong_input_ends
from loko.commands.forwarding import refuse_stacks, stack_admission
from loko.control_traffic import AS_PRINTED, HEARTBEAT
from loko.controller.fixed_tables import FixedTables
from loko.controller.lab_access import access_list
from loko.controller.relay import Listening, interpreter
from loko.controller.switchboard import Switchboard
from loko.controller.wire import WireReply
from loko.document import InputError
from loko.entries import FlowEntry, default_entries, match_of, switch_entries
from loko.flow import Flow
from loko.lab import Backend, Lab, load_lab
from loko.network import Hop, load_paths
from loko.planning import plan, scenario_of
from loko.requests import load_flows
from loko.scenario import OpenFlow
from loko.schemes import admission_of, variant_named
from loko.vlan_stack import ForwardingMode, stack_entries

TICK_S: Final = 0.05
_LOG: Final = logging.getLogger("loko.controller")


def main(
    *,
    lab: Annotated[str, typer.Option(help="Name or path of a lab.")],
    flows: Annotated[str, typer.Option(help="YAML or JSON list of flows.")],
    cabling: Annotated[
        Path | None,
        typer.Option(help="Which switches are real boards: these connect from their ip_address only."),
    ] = None,
    allocation: Annotated[
        str | None,
        typer.Option(
            help="full-rate, fifth-rate, optimised (for the lab's mix), packet-granular, or a baseline: silo,"
            " qjump. Default: as the lab says, else fifth-rate."
        ),
    ] = None,
    paths: Annotated[
        Path | None,
        typer.Option(
            help='JSON: by id of a flow, its path as [{"switch": "s1", "output_port": 3}, ...]. Such a flow'
            " is admitted on no other path. Default: the best one that has room."
        ),
    ] = None,
    as_printed: Annotated[
        bool,
        typer.Option(
            "--as-printed",
            help="Replay the paper: exact clocks, and nothing reserved, not even for what boards do by"
            " themselves.",
        ),
    ] = False,
    entries: EntriesOption = None,
    backend: Annotated[
        Backend | None, typer.Option(help="Backend of every switch. Default: as the lab says.")
    ] = None,
    openflow: OpenFlowOption = OpenFlow.V1_0,
    forwarding: Annotated[
        ForwardingMode,
        typer.Option(
            help="By an entry for each flow, or by stacks of VLAN tags: then the tables are the same whatever"
            " flows there are, and hosts tag their frames."
        ),
    ] = ForwardingMode.PER_FLOW,
    listen: Annotated[str, typer.Option(help="Address and TCP port.")] = "127.0.0.1:6633",
    ready: Annotated[Path | None, typer.Option(help="File that exists while every switch is set up.")] = None,
    echo_rate: Annotated[
        Path | None,
        typer.Option(help="File with the EchoRequests a second to send to each switch, as a load."),
    ] = None,
    framework: Annotated[str, typer.Option(help="OpenFlow framework: os-ken or ryu.")] = "os-ken",
    framework_python: Annotated[
        str | None, typer.Option(help="Interpreter that has the framework. Default: this one.")
    ] = None,
) -> None:
    """Admit flows, then set up every switch of the lab that connects. Ends on SIGTERM or Ctrl-C.

    Status 1 if a flow is refused, 2 for wrong input.

    Example: python -m loko.controller --lab two-switch --flows flows.yml --ready /run/loko.ready
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    with wrong_input_ends():
        the_lab = load_lab(lab, cabling).with_backend(backend)
        if as_printed:
            the_lab = the_lab.as_printed()
        decided = {} if paths is None else load_paths(paths)
        requested = load_flows(flows)
        tables = admitted_tables(
            the_lab, requested, allocation, entries, decided, openflow=openflow, forwarding=forwarding
        )
        if ready is not None and not os.access(ready.parent, os.W_OK):
            raise InputError(f"--ready {ready}: its folder is missing or cannot be written to")
        python = interpreter(framework, framework_python)
        with _bound(listen) as listening:
            controller = TableController(
                the_lab, tables, listen=listen, ready=ready, echo_rate=echo_rate, openflow=openflow
            )
            status = asyncio.run(controller.run(listening, framework, python))
    raise typer.Exit(status)


class TableController:
    """Carries events between the switches and the tables, and shows by a file when all are set up."""

    def __init__(
        self,
        lab: Lab,
        tables: dict[str, tuple[FlowEntry, ...]],
        *,
        listen: str,
        ready: Path | None,
        echo_rate: Path | None,
        openflow: OpenFlow,
    ) -> None:
        self._lab, self._planned, self._listen = lab, tables, listen
        self._ready, self._echo_rate = ready, echo_rate
        self._tables = FixedTables(lab, tables, openflow)
        self._switches = Switchboard(access_list(lab, listen=None), self, openflow)
        self._ended = asyncio.Event()
        self._status = 0
        self._was_ready = True
        self._load = 0.0

    async def run(self, listening: socket.socket, framework: str, python: str) -> int:
        """Run until SIGTERM or Ctrl-C, or until the OpenFlow application ends. Return the exit status."""
        self._tell(is_ready=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._ended.set)
        await self._switches.start(Listening(plain=listening), framework, python)
        while not self._ended.is_set():
            self._tables.tick(time.monotonic_ns())
            self._carry_out()
            self._look_for_load()
            try:
                await asyncio.wait_for(self._ended.wait(), TICK_S)
            except TimeoutError:
                continue
        self._tell(is_ready=False)
        await self._switches.end()
        return self._status

    def switch_connected(self, name: str) -> None:
        """Called when a switch has introduced itself."""
        self._tables.connected(time.monotonic_ns(), name)
        self._carry_out()

    def switch_replied(self, name: str, reply: WireReply) -> None:
        """Called when a switch has answered."""
        self._tables.reply(time.monotonic_ns(), name, reply)
        self._carry_out()

    def switch_disconnected(self, name: str) -> None:
        """Called when the connection of a switch is gone."""
        self._tables.disconnected(name)
        self._carry_out()

    def connection_refused(self, text: str) -> None:
        """Called with a line, which is logged already, when a connection was refused."""

    def application_ended(self, status: int) -> None:
        """End with status 1: the OpenFlow application has ended, which it should not."""
        _LOG.critical("the OpenFlow application has ended with status %d; its messages are above", status)
        self._status = 1
        self._ended.set()

    def _carry_out(self) -> None:
        effects = self._tables.effects()
        for line in effects.lines:
            _LOG.info("%s", line)
        for name, requests in effects.sends:
            self._switches.send(name, requests)
        for name in effects.closes:
            self._switches.close(name)
        self._tell(is_ready=self._tables.ready)

    def _look_for_load(self) -> None:
        """Pass on the rate of EchoRequests from its file, which exists only during measurements."""
        if self._echo_rate is None:
            return
        try:
            load = float(self._echo_rate.read_text(encoding="ascii"))
        except (OSError, ValueError):
            load = 0.0
        self._tables.set_quiet(quiet=self._echo_rate.exists())
        if load != self._load:
            self._load = load
            self._switches.load(load)

    def _tell(self, *, is_ready: bool) -> None:
        """Keep the ready file up to date: it exists, complete, exactly while every switch is set up."""
        if self._ready is None or is_ready == self._was_ready:
            return
        self._was_ready = is_ready
        if not is_ready:
            self._ready.unlink(missing_ok=True)
            return
        switches = {
            name: {"datapath_id": f"{switch.datapath_id:016x}", "entries": len(self._planned[name])}
            for name, switch in self._lab.switches.items()
        }
        text = json.dumps({"lab": self._lab.name, "listen": self._listen, "switches": switches}, indent=2)
        unfinished = self._ready.with_name(f"{self._ready.name}.unfinished")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(self._ready)


def admitted_tables(
    lab: Lab,
    requested: Sequence[Flow],
    allocation: str | None,
    entries: int | None,
    paths: Mapping[str, Sequence[Hop]] = MappingProxyType({}),
    *,
    openflow: OpenFlow = OpenFlow.V1_0,
    forwarding: ForwardingMode = ForwardingMode.PER_FLOW,
) -> dict[str, tuple[FlowEntry, ...]]:
    """Return the tables of the flows on the paths on which they were admitted; see `plan` for `paths`.

    Ends the program with status 1 if a flow is refused. Raises `InputError`.
    """
    planned = default_entries(lab) if entries is None else entries
    choice = variant_named(allocation or lab.allocation or FIFTH_RATE.name)
    reserved = AS_PRINTED if lab.is_as_printed else HEARTBEAT
    control: Admission
    if forwarding is ForwardingMode.VLAN_STACK:
        refuse_stacks(choice)
        control = stack_admission(lab, choice, requested, openflow=openflow, traffic=reserved)
    else:
        mix = lab.mix if choice.is_optimised else None
        scenario = scenario_of(
            requested,
            entries=planned,
            mix=mix,
            openflow=openflow,
            match=match_of(lab),
            lab=lab,
            paths=paths,
        )
        control = admission_of(lab, choice, scenario, traffic=reserved)
    result = plan(lab, requested, control, paths)
    if result.refused:
        for refusal in result.refused:
            typer.echo(f"refused: {refusal}", err=True)
        raise typer.Exit(1)
    if forwarding is ForwardingMode.VLAN_STACK:
        return stack_entries(lab)
    return switch_entries(lab, result.accepted, entries=planned)


def _bound(text: str) -> socket.socket:
    address = Address.parse(text, "--listen")
    listening = socket.socket(socket.AF_INET6 if address.is_ipv6 else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        return listening  # the OpenFlow application calls listen() once it can serve
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {text}: {error.strerror}; end what uses it or choose another --listen"
        ) from None


if __name__ == "__main__":
    typer.run(main)
