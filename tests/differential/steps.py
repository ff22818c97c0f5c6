"""Steps of a trial: what a controller and hosts might do with a switch, drawn at random.

What is drawn is what both switches must do in the same way. `NOT_DRAWN` lists the rest, with reasons.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from loko.control.framing import framed

NOT_DRAWN: Final = {
    "CHECK_OVERLAP for an entry that exists": "the entry overlaps with itself, so the board refuses it"
    " (4.6); Open vSwitch replaces it",
    "overlapping entries of the same priority": "a switch may choose between them (3.4)",
    "entries whose only wildcards are fields that their packets do not have": "the board takes them as"
    " exact, with the highest priority (3.4); Open vSwitch goes by their priority",
    "SET_TP_SRC and SET_TP_DST in trials with ICMP": "they set ports of TCP and UDP (3.3); Open vSwitch"
    " also sets type and code of ICMP",
    "frames at ports that are DOWN or NO_RECV": "the board must drop them (5.2.1); dummy ports of Open"
    " vSwitch send and receive while DOWN, and it counts what NO_RECV drops",
    "PACKET_OUT whose in_port is NO_RECV": "the port has not received the frame, so the board sends it;"
    " Open vSwitch drops it",
    "NO_PACKET_IN": "the board reports no misses of that port (5.2.1); Open vSwitch does",
    "matches on a VLAN priority without a VLAN": "the board ignores the priority; Open vSwitch compares"
    " it with that of any tag",
    "later fragments of TCP and UDP": "they have no checksum to correct; Open vSwitch changes"
    " their data when it sets an address",
    "actions after TABLE": "the board performs them on the frame as it was before TABLE; Open vSwitch"
    " performs them on the frame as the matching entry has changed it",
    "VLAN actions in a PACKET_OUT with TABLE": "the entry's byte counter has the frame's length at the"
    " table; that of Open vSwitch has its length in the message",
    "PORT_STATUS after PORT_MOD": "required only if something other than PORT_MOD changes the port"
    " (5.2.1); Open vSwitch reports DOWN",
    "MODIFY with another cookie": "it changes the actions only (4.6); Open vSwitch changes the cookie, too",
    "ports NORMAL and LOCAL, and ports above 4": "the board has none and refuses them; Open vSwitch"
    " accepts any number",
    "more than four actions": "the board refuses them (TOO_MANY): an entry has four slots",
    "matches on fields that their packets do not have": "the board ignores these fields in all matches"
    " (3.4); Open vSwitch finds no entry to change, delete or report",
    "timeouts, durations, queues": "they depend on a clock, or the board has none",
    "SET_CONFIG that requests reassembly of fragments": "neither switch can; the board refuses it (5.3.2)",
}
"""Of OpenFlow 1.0 what both switches do, with the section of 1.0.1."""

NOT_DRAWN_13: Final = {
    "misses in later tables": "the board drops the frame (5.4); Open vSwitch performs its action set. So"
    " each later table keeps an entry that matches everything else",
    "DEC_NW_TTL in APPLY_ACTIONS in trials with action sets": "a frame whose TTL is invalid leaves the"
    " pipeline (7.4.1); Open vSwitch still performs its action set",
    "CONTROLLER in action sets and buckets": "the cookie of the PACKET_IN is −1 (7.4.1); Open vSwitch"
    " reports that of an entry",
    "table and cookie of PACKET_IN for an invalid TTL": "likewise: Open vSwitch reports those of an entry",
    "TABLE in trials whose table-miss entries send to the controller": "the reason is NO_MATCH (7.4.1);"
    " Open vSwitch says ACTION for frames of PACKET_OUT",
    "PUSH_VLAN on tagged frames": "the new tag copies VLAN and priority of the old one (5.12.1); Open"
    " vSwitch sets both to 0",
    "changes of tags before a next table, a group, or TABLE": "byte counters of these have the frame's"
    " length when it reaches them; those of Open vSwitch have its length on arrival",
    "inconsistent actions other than POP_VLAN and SET_FIELD": "a switch may refuse them (6.4); Open"
    " vSwitch refuses more of them",
    "several faults in one message": "a switch may report any of them",
    "MODIFY that names groups or meters": "the board refuses those that do not exist; Open vSwitch does"
    " so only if an entry changes",
    "the error for a missing meter": "UNKNOWN_METER; that of Open vSwitch is INVALID_METER",
    "entries that name a group twice": "Open vSwitch crashes when the group is deleted",
    "counters of whole groups": "they count every frame that is sent to the group; those of Open vSwitch"
    " omit frames that find no live bucket. The counters of buckets are compared",
    "SEND_FLOW_REM in entries with a meter": "when the meter is deleted, the reason is DELETE; Open"
    " vSwitch has a reason that 1.3 lacks, and sends nothing",
    "cookie 0": "Open vSwitch also counts entries of its own, and refuses to delete these",
    "masks without any bit": "such a field is omitted (7.2.3.5); MODIFY of Open vSwitch then finds no entry",
    "counters of meters in trials that modify meters": "1.3 does not say whether they continue, as on"
    " the board, or start again, as in Open vSwitch",
    "bands without a burst size": "the board reports 0; Open vSwitch reports the rate",
    "rates that drop frames": "they depend on a clock",
    "SELECT": "a switch may choose among the buckets (5.6.1)",
    "groups in buckets, watched groups, queues, LOCAL and NORMAL": "the board has none and refuses them",
    "MPLS, PBB, SCTP, IPv6 extension headers": "Open vSwitch lacks some and treats tags in another order",
    "fragments of TCP, UDP and ICMP": "1.3 does not define their ports; those of Open vSwitch are 0",
    "SET_FIELD of ETH_TYPE and IP_PROTO": "the board sets them (7.2.5); Open vSwitch refuses to",
    "more than 96 bytes of fields or instructions, or 64 of buckets": "the board has no memory for them:"
    " TABLE_FULL, OUT_OF_BUCKETS",
    "SET_CONFIG with flags": "the board cannot handle fragments and refuses the flags (7.3.2)",
}
"""Of OpenFlow 1.3 the same, with the section of 1.3.4; much of `NOT_DRAWN` also holds there."""

DOWN: Final = 1
NO_RECV, NO_FLOOD, NO_FWD = 1 << 2, 1 << 4, 1 << 5
CLOSED: Final = DOWN | NO_RECV
"""Flags of a port that receives nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `kind` is "frame" (arriving at `port`), "message", or "port" (PORT_MOD)."""

    kind: str
    data: bytes = b""
    port: int = 0
    config: int = 0
    mask: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": self.kind,
            "data": self.data.hex(),
            "port": self.port,
            "config": self.config,
            "mask": self.mask,
        }

    @classmethod
    def of_json(cls, row: dict[str, Any]) -> Step:
        """Return the step that `to_json` wrote."""
        return cls(row["kind"], bytes.fromhex(row["data"]), row["port"], row["config"], row["mask"])


def message(version: int, kind: int, body: bytes = b"", xid: int = 7) -> bytes:
    """Return an OpenFlow message."""
    return framed(version, kind, xid, body)


def port_mod(version: int, step: Step, address: bytes) -> bytes:
    """Return the PORT_MOD of a step for a switch whose port has this address."""
    if version == 1:
        body = struct.pack("!H6sIII4x", step.port, address, step.config, step.mask, 0)
        return message(1, 15, body)
    return message(4, 16, struct.pack("!I4x6s2xIII4x", step.port, address, step.config, step.mask, 0))
