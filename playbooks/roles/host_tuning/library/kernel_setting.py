#!/usr/bin/python
"""Ansible module: a setting of the kernel, now and after a reboot."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: kernel_setting
short_description: Sets a setting of the kernel, now and after a reboot
description:
  - Writes it into C(/proc/sys) and into a file that is read at the start, if it is not there already.
options:
  name: {type: str, required: true, description: Its name for sysctl, such as C(kernel.sched_rt_runtime_us).}
  value: {type: str, required: true, description: Its value.}
  file: {type: path, required: true, description: Where it is written for the next start.}
author:
  - The Loko testbed's authors
"""

RETURN = r"""
before: {type: str, returned: success, description: The value that the kernel had.}
"""

EXAMPLES = r"""
- name: Let real-time threads have the whole of a CPU
  kernel_setting:
    name: kernel.sched_rt_runtime_us
    value: "-1"
    file: /etc/sysctl.d/60-loko-testbed.conf
"""

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "value": {"type": "str", "required": True},
    "file": {"type": "path", "required": True},
}


def with_setting(text: str, name: str, value: str) -> str:
    """The text of the file with exactly one line for this setting."""
    lines = text.splitlines() or ["# Written by the testbed's role host_tuning."]
    kept = [line for line in lines if not re.match(rf"\s*{re.escape(name)}\s*=", line)]
    return "\n".join([*kept, f"{name} = {value}"]) + "\n"


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name, value = module.params["name"], module.params["value"]
    live, file = Path("/proc/sys", *name.split(".")), Path(module.params["file"])
    try:
        before = " ".join(live.read_text(encoding="ascii").split())
    except OSError:
        module.fail_json(msg=f"this kernel has no setting {name}: remove it from host_tuning_kernel")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    wanted = with_setting(text, name, value)
    # An order of lines that was changed by hand is no difference.
    kept = sorted(wanted.splitlines()) == sorted(text.splitlines())
    if not module.check_mode:
        try:
            if before != value:
                live.write_text(value, encoding="ascii")
            if not kept:
                file.write_text(wanted, encoding="utf-8")
        except OSError as error:
            module.fail_json(
                msg=f"{name} cannot be set to {value} ({error.strerror}): run as root, with a value that the"
                " kernel takes"
            )
    module.exit_json(changed=before != value or not kept, before=before)


if __name__ == "__main__":
    main()
