"""`python -m loko.control`: admit the flows of a file and keep the lab's switches set up for them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from loko.admission import Admission
from loko.admission.planning import plan, scenario_of
from loko.admission.schemes import admission_of, variant_named
from loko.control.address import Address
from loko.control.entries import FlowEntry, default_entries, match_of, switch_entries
from loko.control.fixed_tables import FixedTables
from loko.control.lab_access import access_list
from loko.control.relay import Listening, interpreter
from loko.control.stack_admission import refuse_stacks, stack_admission
from loko.control.switchboard import Switchboard
from loko.control.vlan_stack import ForwardingMode, stack_entries
from loko.control.wire import WireReply
from loko.document import InputError
from loko.program_options import OneLineParser, one_of
from loko.switch_model.allocation import FIFTH_RATE
from loko.switch_model.control_traffic import AS_PRINTED, HEARTBEAT
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow
from loko.terminal import tell, user_errors_end
from loko.topology.lab import Backend, Lab, load_lab
from loko.topology.network import Hop, load_paths
from loko.topology.requests import load_flows

TICK_S: Final = 0.05
_LOG: Final = logging.getLogger("loko.control")


def options() -> OneLineParser:
    """Return the options of this program."""
    parser = OneLineParser(
        prog="python -m loko.control",
        description="Admit flows, then set up every switch of the lab that connects. Ends on SIGTERM or"
        " Ctrl-C. Status 1 if a flow is refused, 2 for wrong input.",
        epilog="Example: python -m loko.control --lab two-switch --flows flows.yml --ready /run/loko.ready",
    )
    add = parser.add_argument
    add("--lab", required=True, help="Name or path of a lab.")
    add("--flows", required=True, help="YAML or JSON list of flows.")
    add(
        "--cabling",
        type=Path,
        help="Which switches are real boards: these connect from their ip_address only.",
    )
    add(
        "--allocation",
        help="full-rate, fifth-rate, optimised (for the lab's mix), packet-granular, or a baseline: silo,"
        " qjump. Default: as the lab says, else fifth-rate.",
    )
    add(
        "--paths",
        type=Path,
        help='JSON: by id of a flow, its path as [{"switch": "s1", "output_port": 3}, ...]. Such a flow is'
        " admitted on no other path. Default: the best one that has room.",
    )
    add(
        "--as-printed",
        action="store_true",
        help="Replay the paper: exact clocks, and nothing reserved, not even for what boards do alone.",
    )
    add("--entries", type=int, help="Entries that each flow table is planned for. Default: as loko plan.")
    add("--backend", type=one_of(Backend), help="Backend of every switch. Default: as the lab says.")
    add("--openflow", type=one_of(OpenFlow), default=OpenFlow.V1_0, help="OpenFlow version.")
    add(
        "--forwarding",
        type=one_of(ForwardingMode),
        default=ForwardingMode.PER_FLOW,
        help="By an entry for each flow, or by stacks of VLAN tags: then the tables are the same whatever"
        " flows there are, and hosts tag their frames.",
    )
    add("--listen", default="127.0.0.1:6633", help="Address and TCP port.")
    add("--ready", type=Path, help="File that exists while every switch is set up.")
    add(
        "--echo-rate",
        type=Path,
        help="File with the EchoRequests a second to each switch, as a load.",
    )
    add("--framework", default="os-ken", help="OpenFlow framework: os-ken or ryu.")
    add("--framework-python", help="Interpreter that has the framework. Default: this one.")
    return parser


class AdmittedTables(NamedTuple):
    """The tables of admitted flows."""

    entries: dict[str, tuple[FlowEntry, ...]]
    """By name of the switch."""
    guarantees_ns: dict[str, float]
    """By id of the flow."""


def main() -> int:
    """Admit flows, then set up every switch of the lab that connects. Return the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    chosen = options().parse_args()
    if chosen.entries is not None and chosen.entries < 1:
        raise InputError(f"--entries {chosen.entries}: must be at least 1")
    lab = load_lab(chosen.lab, chosen.cabling).with_backend(chosen.backend)
    if chosen.as_printed:
        lab = lab.as_printed()
    paths = {} if chosen.paths is None else load_paths(chosen.paths)
    admitted = admitted_tables(
        lab,
        load_flows(chosen.flows),
        chosen.allocation,
        chosen.entries,
        paths,
        openflow=chosen.openflow,
        forwarding=chosen.forwarding,
    )
    if chosen.ready is not None and not os.access(chosen.ready.parent, os.W_OK):
        raise InputError(f"--ready {chosen.ready}: its folder is missing or cannot be written to")
    python = interpreter(chosen.framework, chosen.framework_python)
    with _bound(chosen.listen) as listening:
        controller = TableController(
            lab,
            admitted,
            listen=chosen.listen,
            ready=chosen.ready,
            echo_rate=chosen.echo_rate,
            openflow=chosen.openflow,
        )
        return asyncio.run(controller.run(listening, chosen.framework, python))


class TableController:
    """Carries events between the switches and the tables, and shows by a file when all are set up."""

    def __init__(
        self,
        lab: Lab,
        admitted: AdmittedTables,
        *,
        listen: str,
        ready: Path | None,
        echo_rate: Path | None,
        openflow: OpenFlow,
    ) -> None:
        self._lab, self._admitted, self._listen = lab, admitted, listen
        self._ready, self._echo_rate = ready, echo_rate
        self._tables = FixedTables(lab, admitted.entries, openflow)
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
            name: {"datapath_id": f"{switch.datapath_id:016x}", "entries": len(self._admitted.entries[name])}
            for name, switch in self._lab.switches.items()
        }
        values = {
            "lab": self._lab.name,
            "listen": self._listen,
            "switches": switches,
            "guarantees_ns": self._admitted.guarantees_ns,
        }
        text = json.dumps(values, indent=2)
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
) -> AdmittedTables:
    """Admit flows and return the tables for the paths on which they were admitted; see `plan` for `paths`.

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
            tell(f"refused: {refusal}", err=True)
        raise SystemExit(1)
    return AdmittedTables(
        stack_entries(lab)
        if forwarding is ForwardingMode.VLAN_STACK
        else switch_entries(lab, result.accepted, entries=planned),
        {accepted.flow.id: accepted.guarantee_ns for accepted in result.accepted},
    )


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
    with user_errors_end():
        sys.exit(main())
