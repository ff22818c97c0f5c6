"""OpenFlow messages for tests and controllers of other people, as bytes, built by os-ken's parsers.

`from loko import flow_mod, flow_mods, packet_out` (docs/library.md). What the service itself sends is written
by `wire` and `wire13`, which say why; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from loko.admission.planning import Plan
from loko.admission.protection import ProtectedPlan
from loko.control import os_ken_messages, os_ken_messages13, wire, wire13
from loko.control.entries import Failover, failover_entries, path_entries
from loko.switch_model.scenario import OpenFlow

Command = Literal["add", "modify", "modify-strict", "delete", "delete-strict"]
_COMMANDS: Final = ("add", "modify", "modify-strict", "delete", "delete-strict")
"""By their number, in either version."""


def flow_mod(
    match: Mapping[str, object] | None = None,
    *,
    output: int | None = None,
    priority: int = 1,
    command: Command = "add",
    cookie: int = 0,
    openflow: OpenFlow | str = OpenFlow.V1_0,
    xid: int = 1,
) -> bytes:
    """FLOW_MOD for frames that match, without timeouts; they leave by the port `output`, if there is one.

    The fields of `match` have os-ken's names: ``{"dl_type": 0x0800, "nw_dst": "10.0.0.3"}`` in 1.0,
    ``{"eth_type": 0x0800, "ipv4_dst": "10.0.0.3"}`` in 1.3; none matches every frame. Raises `ValueError` for
    another command or version, and for a message that exceeds the 536 bytes of a board's segment.
    """
    if command not in _COMMANDS:
        raise ValueError(f"command {command!r}: is none of {', '.join(_COMMANDS)}")
    module = os_ken_messages if OpenFlow(openflow) is OpenFlow.V1_0 else os_ken_messages13
    actions = [] if output is None else [module.output_to(output)]
    message: bytes = module.flow_mod(
        module.parser.OFPMatch(**(match or {})),
        actions,
        priority=priority,
        xid=xid,
        command=_COMMANDS.index(command),
        cookie=cookie,
    )
    return message


def packet_out(frame: bytes, output: int, *, openflow: OpenFlow | str = OpenFlow.V1_0, xid: int = 1) -> bytes:
    """PACKET_OUT of a frame, without FCS, by a port. Raises `ValueError` as `flow_mod` does."""
    module = os_ken_messages if OpenFlow(openflow) is OpenFlow.V1_0 else os_ken_messages13
    message = module.parser.OFPPacketOut(
        module.PROTOCOL,
        buffer_id=module.of.OFP_NO_BUFFER,
        in_port=module.of.OFPP_NONE if module is os_ken_messages else module.of.OFPP_CONTROLLER,
        actions=[module.output_to(output)],
        data=frame,
    )
    return os_ken_messages.serialized(message, xid)


def flow_mods(planned: Plan, *, openflow: OpenFlow | str = OpenFlow.V1_0) -> dict[str, list[bytes]]:
    """By switch, the FLOW_MODs that install the accepted flows of a plan, as `loko serve` sends them.

    Send each in a segment of its own to a Zodiac FX. The guarantees also suppose that nothing else is in the
    tables than what was planned for (`loko plan --entries`).
    """
    encoding = wire if OpenFlow(openflow) is OpenFlow.V1_0 else wire13
    by_switch: dict[str, list[bytes]] = {name: [] for name in planned.lab.switches}
    for cookie, admitted in enumerate(planned.accepted, start=1):
        for visit, entry in path_entries(planned.lab, admitted):
            sent_before = by_switch[visit.switch]
            add = wire.AddEntry(len(sent_before) + 1, encoding.entry_of(entry, cookie=cookie))
            sent_before.append(encoding.encode(add))
    return by_switch


def failover_mods(protected: ProtectedPlan) -> dict[str, list[bytes]]:
    """By switch, the GROUP_MODs and FLOW_MODs that install a plan with groups of type fast failover.

    They are of OpenFlow 1.3. See `loko.control.entries.failover_entries`.
    """
    lab = protected.plan.lab
    groups: dict[str, dict[int, bytes]] = {name: {} for name in lab.switches}
    entries: dict[str, list[bytes]] = {name: [] for name in lab.switches}
    for cookie, (switch, entry) in enumerate(failover_entries(lab, protected), start=1):
        for action in entry.actions:
            if isinstance(action, Failover):
                groups[switch][action.group_id] = wire13.add_group(len(groups[switch]) + 1, action)
        add = wire.AddEntry(cookie, wire13.entry_of(entry, cookie=cookie))
        entries[switch].append(wire13.encode(add))
    return {name: [*groups[name].values(), *entries[name]] for name in lab.switches}
