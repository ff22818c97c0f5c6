#!/usr/bin/python
"""Ansible module: what network cards can stamp."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: nic_timestamping
short_description: Tells whether network cards stamp every frame, and by which clock
description:
  - Asks ethtool and changes nothing.
requirements:
  - ethtool
options:
  interfaces: {type: list, elements: str, required: true, description: The network cards.}
author:
  - The Loko testbed's authors
"""

RETURN = r"""
clocks: {type: dict, returned: success, description: Number of each card's clock, or null without one.}
advice: {type: list, returned: success, description: What it means, in sentences.}
"""

EXAMPLES = r"""
- name: Examine the cards behind the taps
  nic_timestamping:
    interfaces: [enp4s0f0, enp4s0f1]
"""

ARGUMENTS = {"interfaces": {"type": "list", "elements": "str", "required": True}}


@dataclass(frozen=True)
class Stamps:
    """Time stamping that a card supports."""

    clock: int | None
    """Number of its clock (/dev/ptpN)."""
    every_frame: bool
    """Whether it stamps every frame that it receives; many stamp only those of PTP."""


def parse(text: str) -> Stamps:
    """Output of `ethtool -T`."""
    clock = re.search(r"(?:PTP Hardware Clock|Hardware timestamp provider index): *(\d+)", text)
    filters = text.partition("Hardware Receive Filter Modes:")[2]
    every = bool(re.search(r"^\s*all\b", filters, re.MULTILINE))
    return Stamps(clock=int(clock[1]) if clock else None, every_frame=every and clock is not None)


def advise(cards: dict[str, Stamps]) -> list[str]:
    """Consequence for the bench."""
    lines = []
    for name, card in cards.items():
        if card.every_frame:
            lines.append(f"{name}: stamps every frame that it receives, by clock {card.clock}")
        elif card.clock is not None:
            lines.append(f"{name}: has clock {card.clock} but does not stamp every frame; the kernel stamps")
        else:
            lines.append(f"{name}: has no clock; the kernel stamps")
    clocks = {card.clock for card in cards.values()}
    if len(cards) > 1 and all(card.every_frame for card in cards.values()):
        if len(clocks) == 1:
            lines.append("all of them share one clock: the bench takes the cards' stamps")
        else:
            lines.append(
                "their clocks differ, and stamps of two clocks are never compared: the bench takes the"
                " kernel's; use two ports of one card whose clock they share"
            )
    return lines


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    ethtool = module.get_bin_path("ethtool", required=not module.check_mode)
    if ethtool is None:
        module.exit_json(changed=False, clocks={}, advice=["ethtool is not installed yet"])
    cards = {}
    for interface in module.params["interfaces"]:
        status, output, complaint = module.run_command([ethtool, "-T", interface])
        if status != 0:
            said = (complaint.strip() or output.strip() or "ethtool fails").splitlines()[-1]
            module.fail_json(msg=f"{interface}: {said}: 'ip -brief link' lists this machine's cards")
        cards[interface] = parse(output)
    clocks = {name: card.clock for name, card in cards.items()}
    module.exit_json(changed=False, clocks=clocks, advice=advise(cards))


if __name__ == "__main__":
    main()
