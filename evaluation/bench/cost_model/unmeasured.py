"""Why a campaign does not find a number: which are contained in others, and which it does not look at."""

from __future__ import annotations

from typing import Final

_REASONS: Final = {
    "ports.count": "counted on the housing; the agent shows only the ports that are its own",
    "ports.tail_tag_bytes": "no frame came out later than the link at the entrance brought it",
    "ports.": "of the standard: the bench's own links have the same",
    "integrated_switch.transit_ps": (
        "each way through the CPU passes it twice: equation 7 counts both as the CPU's, and of the costs of"
        " replies only the sum with both shows; only frames that it forwards by itself tell it (is-time),"
        " if the host of an emulated switch is quick enough for them"
    ),
    "integrated_switch.buffer_bytes": (
        "one port fills it by no more than the tag of each frame, a byte, so within 8 s at line rate;"
        " the bench has no second sender"
    ),
    "flow_control.front_ports": "only pause frames into the port of exit tell it; the bench sends none there",
    "flow_control.pause_quanta": "pauses end before it runs out, when the CPU has emptied its ring enough",
    "flow_control.discard_permille": (
        "no burst that was too long showed it, or the host of an emulated switch passes frames on too late:"
        " a pause ends between two frames of the integrated switch"
    ),
    "flow_control.resume_units": "a paused switch that keeps frames does not show the end of the pause",
    "flow_control.": "no burst that was too long showed it",
    "buffer.": "several rules give the same number of frames of every length",
    "tolerance.": "what promises allow for; no clock of the bench is surer than those that it would judge",
    "table.entries": "the switch took every entry that the bench tried",
    "cpu.action.output.": "contained in cpu.base and cpu.per_byte: every frame that comes out has it once",
    "cpu.control.interrupt_ps": "comes with every segment: only its sum with cpu.control.segment_ps shows",
    "cpu.control.acknowledgement_ps": "needs to know when the bench's controller acknowledges",
    "cpu.control.native_": "needs frames on the native port, with a board that keeps its connection itself",
    "cpu.housekeeping.": "the bench cannot switch the unmodified firmware's jobs on",
    "cpu.openflow13.": "the bench speaks OpenFlow 1.0 only",
    "cpu.console.": "needs typing at the console while frames pass",
}
_OTHERWISE: Final = "its procedure has not been measured, or its samples do not tell it from others"


def reason(name: str) -> str:
    """Why the number with this dotted name is not found."""
    keys = [key for key in _REASONS if name == key or (key.endswith((".", "_")) and name.startswith(key))]
    return _REASONS[max(keys, key=len)] if keys else _OTHERWISE
