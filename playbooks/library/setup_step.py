#!/usr/bin/python
"""Ansible module: a step of the set-up, `setup/NAME.sh` of the repository."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: setup_step
short_description: Carries out a step of the testbed's set-up
description:
  - Runs C(setup/NAME.sh) of the repository, which looks first whether there is anything to do, and then
    proves by a command that what it installed works.
  - A step says in a line what it changes, and nothing if there is nothing to do. Check mode does no more.
options:
  root: {type: path, required: true, description: The repository on this machine.}
  name: {type: str, required: true, description: The step, such as C(packages).}
  arguments: {type: list, elements: str, default: [], description: Arguments of the step.}
  proof: {type: list, elements: str, default: [], description: A command that works when the step is done.}
author:
  - The Loko testbed's authors
"""

RETURN = r"""
done: {type: list, returned: success, description: What was changed; in check mode what would be.}
"""

EXAMPLES = r"""
- name: Install what the taps need
  setup_step:
    root: /home/me/loko
    name: packages
    arguments: [capture]
    proof: [tcpdump, --version]
"""

ARGUMENTS = {
    "root": {"type": "path", "required": True},
    "name": {"type": "str", "required": True},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "proof": {"type": "list", "elements": "str", "default": []},
}


def reason(output: str) -> str:
    """The line of a failed step that says why: its own last one, else simply the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    own = [line.removeprefix("setup: ") for line in lines if line.startswith("setup: ")]
    return (own or lines or ["it said nothing"])[-1]


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    root, name = Path(module.params["root"]), module.params["name"]
    script = root / "setup" / f"{name}.sh"
    if not script.is_file():
        module.fail_json(
            msg=f"{script} is missing: {root} is no copy of the testbed's repository; set testbed_root to one"
        )
    command: list[str] = [
        str(script),
        *(["--check"] if module.check_mode else []),
        *module.params["arguments"],
    ]
    done = _run(command, root)
    if done.returncode != 0:
        module.fail_json(msg=f"{name}: {reason(done.stdout + done.stderr)}", log=done.stderr[-4000:])
    changes = [line.removeprefix("setup: ") for line in done.stdout.splitlines() if line.strip()]
    if module.params["proof"] and not module.check_mode:
        proof = _run([str(root / "setup" / "with-tools"), *module.params["proof"]], root)
        if proof.returncode != 0:
            words = " ".join(module.params["proof"])
            said = reason(proof.stdout + proof.stderr)
            module.fail_json(msg=f"{name}: '{words}' does not work: {said}; repeat after 'make clean'")
    module.exit_json(changed=bool(changes), done=changes)


def _run(command: Sequence[str], root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    main()
