"""Entries that a board, unlike other switches, carries out wrongly: refused before they are sent.

docs/driver.md lists the quirks. The driver itself minds those that depend on the order of messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from loko.control import wire13
from loko.control.entries import UNTAGGED, Enqueue, FlowEntry, PopVlan, PushVlan, SetVlan
from loko.document import InputError
from loko.switch_model.device import Profile
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Switch

_MOST_ACTIONS: Final = 4
"""OpenFlow 1.0: the most actions that an entry keeps."""
_MOST_BYTES_13: Final = 96
"""OpenFlow 1.3: the longest match, and the longest instructions, of an entry (quirk 122)."""
_VIDS: Final = range(1, 4095)


def refuse_unsafe_entries(switch: Switch, openflow: OpenFlow, entries: Sequence[FlowEntry]) -> None:
    """Raise `InputError` for a table that a board would not keep, or not carry out, as intended.

    Other switches take anything that the version can express.
    """
    if not switch.backend.is_board or not isinstance(switch.profile, Profile):
        return
    if switch.profile.integrated_switch.cpu_port_tags == "removed" and any(
        entry.match.dl_vlan not in {None, UNTAGGED} or entry.match.dl_vlan_pcp is not None
        for entry in entries
    ):
        raise InputError(
            f"{switch.name}: the port to its CPU removes VLAN tags (cpu_port_tags in profile"
            f" '{switch.profile.name}'), so no entry matches one; forward without tags"
        )
    unsafe = _unsafe_together(entries) if openflow is OpenFlow.V1_0 else _unsafe_together_13(entries)
    for entry in entries:
        for reason in _unsafe_alone(entry) if openflow is OpenFlow.V1_0 else _unsafe_alone_13(entry):
            raise InputError(f"{switch.name}: {reason}")
    for reason in unsafe:
        raise InputError(f"{switch.name}: {reason}")


def _unsafe_alone(entry: FlowEntry) -> Iterator[str]:
    yield from _unsafe_in_both(entry)
    if entry.match.dl_vlan is not None:
        yield "in OpenFlow 1.0 it takes each VLAN tag for any other (quirk 62); ask for 1.3"
    if entry.match.dl_vlan_pcp is not None or entry.match.nw_tos is not None:
        yield "in OpenFlow 1.0 it does not compare dl_vlan_pcp and nw_tos (quirk 63); ask for 1.3"
    if sum(isinstance(action, PopVlan | PushVlan | SetVlan) for action in entry.actions) > 1:
        yield "in OpenFlow 1.0 an entry's second VLAN action goes to a wrong place (quirk 74); ask for 1.3"
    if len(entry.actions) > _MOST_ACTIONS:
        yield f"an entry has {len(entry.actions)} actions, of which it keeps {_MOST_ACTIONS}; leave some out"


def _unsafe_together(entries: Sequence[FlowEntry]) -> Iterator[str]:
    counts = sorted({len(entry.actions) for entry in entries})
    if len(counts) > 1:
        yield (
            f"its entries have {counts[0]} to {counts[-1]} actions, and in OpenFlow 1.0 the shorter do what"
            " longer ones have left (quirk 55); give all as many"
        )


def _unsafe_alone_13(entry: FlowEntry) -> Iterator[str]:
    yield from _unsafe_in_both(entry)
    sent = wire13.entry_of(entry, cookie=0)
    longest = max(len(sent.match), len(sent.actions))
    if longest > _MOST_BYTES_13:
        yield (
            f"an entry has {longest} bytes of match or actions, of which it keeps {_MOST_BYTES_13}"
            " (quirk 122); leave some out"
        )


def _unsafe_together_13(entries: Sequence[FlowEntry]) -> Iterator[str]:
    """Yield entries whose match others begin with: sorted, it comes just before the first of these."""
    sent = sorted((entry.priority, wire13.entry_of(entry, cookie=0).match) for entry in entries)
    for (priority, match), (other, longer) in itertools.pairwise(sent):
        if priority == other and longer.startswith(match):
            yield (
                f"an entry of priority {priority} would be replaced by one whose match begins with its own"
                " (quirk 124); give them different priorities"
            )


def _unsafe_in_both(entry: FlowEntry) -> Iterator[str]:
    if any(isinstance(action, Enqueue) for action in entry.actions):
        yield "it has no queues, and takes no notice of enqueue (quirks 57 and 158); use output"
    vids = [action.vid for action in entry.actions if isinstance(action, PushVlan | SetVlan)]
    if entry.match.dl_vlan not in {None, UNTAGGED}:
        vids.append(entry.match.dl_vlan or 0)
    for vid in vids:
        if vid not in _VIDS:
            yield f"VLAN {vid} is none (quirks 59 and 148); use 1 to 4094"
