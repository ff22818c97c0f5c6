"""Why a campaign does not find a number: which are contained in others, and which it does not look at."""

from __future__ import annotations

from typing import Final

_REASONS: Final = {
    "ports.count": "counted on the housing; the agent shows only the ports that are its own",
    "ports.": "of the standard: the bench's own links have the same",
    "integrated_switch.transit_ps": (
        "each way through the CPU passes it twice: equation 7 counts both as the CPU's, and of the costs of"
        " replies only the sum with both shows; only frames that it forwards by itself tell it (is-time)"
    ),
    "integrated_switch.buffer_bytes": (
        "fills only if several ports bring more than the link to the CPU carries; the bench sends into one"
    ),
    "flow_control.front_ports": "only pause frames into the port of exit tell it; the bench sends none there",
    "flow_control.": "matters only beyond the maximum throughput, which the campaign does not go into",
    "buffer.": "several rules give the same number of frames of every length",
    "table.entries": "the switch took every entry that the bench tried",
    "cpu.action.output.": "contained in cpu.base and cpu.per_byte: every frame that comes out has it once",
    "cpu.control.interrupt_ps": "comes with every segment: only its sum with cpu.control.segment_ps shows",
    "cpu.control.acknowledgement_ps": "needs frames at the instant of the controller's TCP acknowledgements",
    "cpu.control.native_": "needs frames on the native port, with a board that keeps its connection itself",
    "cpu.housekeeping.": "the bench cannot switch the unmodified firmware's jobs on",
    "cpu.console.": "needs typing at the console while frames pass",
}
_OTHERWISE: Final = "its procedure has not been measured, or its samples do not tell it from others"


def reason(name: str) -> str:
    """Why the number with this dotted name is not found."""
    keys = [key for key in _REASONS if name == key or (key.endswith((".", "_")) and name.startswith(key))]
    return _REASONS[max(keys, key=len)] if keys else _OTHERWISE
