#!/usr/bin/python
"""Ansible module: the offloads of a network card."""

from __future__ import annotations

import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: nic_offloads
short_description: Switches offloads of a network card off
description:
  - Reads them by ethtool, switches off those that are on, and reads them again. One that the card does not
    have is no difference; one that cannot be switched off is an error.
requirements:
  - ethtool
options:
  interface: {type: str, required: true, description: The network card.}
  "off": {type: list, elements: str, required: true, description: Offloads by ethtool's short names.}
author:
  - The Loko testbed's authors
"""

RETURN = r"""
switched: {type: list, returned: success, description: Offloads that were on.}
"""

EXAMPLES = r"""
- name: Have frames pass as they are on the wire
  nic_offloads:
    interface: enp3s0f0
    "off": [tso, gso, gro]
"""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "interface": {"type": "str", "required": True},
    "off": {"type": "list", "elements": "str", "required": True},
}

SHOWN = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}
"""Offloads by the name that sets them and the one that shows them."""


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    interface, wanted = module.params["interface"], module.params["off"]
    for name in wanted:
        if name not in SHOWN:
            module.fail_json(msg=f"host_tuning_offloads: '{name}' is none of {', '.join(SHOWN)}")
    on = _on(module, interface, wanted)
    if on and not module.check_mode:
        words = [word for name in on for word in (name, "off")]
        _ethtool(module, ["-K", interface, *words], interface)
        if left := _on(module, interface, on):
            module.fail_json(
                msg=f"{interface}: {', '.join(left)} cannot be switched off: use another card, or leave it"
                " out of host_tuning_offloads and expect other frames than on the wire"
            )
    module.exit_json(changed=bool(on), switched=on)


def _on(module: AnsibleModule, interface: str, wanted: list[str]) -> list[str]:
    [features] = json.loads(_ethtool(module, ["--json", "-k", interface], interface))
    return [name for name in wanted if features.get(SHOWN[name], {}).get("active")]


def _ethtool(module: AnsibleModule, words: list[str], interface: str) -> str:
    status, output, complaint = module.run_command([module.get_bin_path("ethtool", required=True), *words])
    if status != 0:
        module.fail_json(
            msg=f"{interface}: {(complaint.strip() or 'ethtool fails').splitlines()[-1]}: 'ip -brief link'"
            " lists this machine's cards"
        )
    return str(output)


if __name__ == "__main__":
    main()
