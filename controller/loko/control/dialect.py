"""Dialects of switches: accepted messages, and changes of tables by themselves (docs/driver.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loko.document import InputError
from loko.switch_model.generic_switch import GenericSwitch
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Switch

REFRESH_NS: Final = 200_000_000_000
"""Age at which an entry is renewed: the firmware forgets entries from 512 s on (quirk 51)."""
LISTABLE: Final = (2048 - 12) // (88 + 4 * 16)
"""Entries that fit into the board's memory for a listing, even with four actions of the longest kind each
(quirk 28). It never lists more than 20 (quirk 26)."""
LISTABLE_13: Final = (2048 - 16) // (48 + 104 + 96)
"""The board in OpenFlow 1.3: match and instructions of an entry have at most 96 bytes each (quirk 122), and
what does not fit is left out without notice (quirk 103)."""
PACED_BATCH: Final = 2
"""FLOW_MODs in a segment if control traffic is reserved for:
`loko.switch_model.control_traffic.Message.CHANGE`."""
MOST_ENTRIES: Final = 1 << 16
"""A larger count is invalid: after the only entry has expired, the firmware counts -1 (quirk 52)."""
LEAK_LIMIT: Final = 32
"""How often the memory of an entry may leak before the table is written anew on a new connection, which frees
all. The memory holds 192 entries, the table 128 (quirks 47 and 52); in 1.3 298 (quirks 121 and 123)."""


@dataclass(frozen=True, kw_only=True)
class SwitchDialect:
    """Messages that a switch accepts from a driver, and changes of its table by itself."""

    max_batch: int
    """The most FLOW_MODs in a segment; apart from renewals, at most half of them remove something."""
    max_listed: int | None
    """The most entries that it lists whole, whatever they are; None: any number, and in any order."""
    listing_quirk: int = 0
    """The quirk that limits `max_listed`."""
    lists_priorities: bool = False
    """Whether it lists the priority of an entry as it was given (quirk 27)."""
    reads_back: bool = False
    """Whether entries must be read back, as they may have other actions than they were given (quirk 55)."""
    refresh_ns: int | None = None
    """Age at which an entry is renewed, because the switch may forget older ones."""
    vanished_entries_leak: bool = False
    """Whether entries that vanish by themselves may leak memory."""
    refusals_leak: bool = False
    """Whether refused entries may leak memory."""


DIALECTS: Final = {
    OpenFlow.V1_0: SwitchDialect(
        max_batch=6,
        max_listed=LISTABLE,
        listing_quirk=28,
        reads_back=True,
        refresh_ns=REFRESH_NS,
        vanished_entries_leak=True,
    ),
    # Three deletions with the longest possible matches fit into a segment, four do not.
    OpenFlow.V1_3: SwitchDialect(
        max_batch=3, max_listed=LISTABLE_13, listing_quirk=103, lists_priorities=True, refusals_leak=True
    ),
}
"""The dialect of a board, by the OpenFlow version of its session."""
OPEN_VSWITCH: Final = SwitchDialect(max_batch=6, max_listed=None, lists_priorities=True)
"""The dialect of Open vSwitch and of switch chips, in OpenFlow 1.0."""


def dialect_of(switch: Switch, openflow: OpenFlow) -> SwitchDialect:
    """Return the dialect of a switch of a lab, whatever its backend."""
    is_chip = openflow is OpenFlow.V1_0 and isinstance(switch.profile, GenericSwitch)
    return OPEN_VSWITCH if is_chip or not switch.backend.is_board else DIALECTS[openflow]


def refuse_without_openflow(switch: Switch) -> None:
    """Raise `InputError` if a switch has no OpenFlow, so that no controller can install flows."""
    profile = switch.profile
    if isinstance(profile, GenericSwitch) and profile.table.vlans is not None:
        raise InputError(
            f"{switch.name}: {profile.name} has no OpenFlow ([table] vlans); configure it by hand:"
            " loko plan --configuration"
        )


def refuse_version(switch: Switch, openflow: OpenFlow) -> None:
    """Raise `InputError` if a switch, as its lab sets it up, does not speak the version."""
    if openflow is OpenFlow.V1_0:
        return
    if not switch.backend.is_board:
        raise InputError(
            f"{switch.name}: backend {switch.backend} is driven in OpenFlow 1.0 only; leave --openflow out"
        )
    if switch.config.get("openflow_version") == 1:
        raise InputError(
            f"{switch.name}: its openflow_version is 1, so it speaks OpenFlow 1.0 only; set it to 0 or 4, or"
            " leave --openflow out"
        )
