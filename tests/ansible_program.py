"""Which Ansible runs the playbooks in the tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

OURS = Path(sys.executable).parent / "ansible-playbook"
OLDEST = Path(__file__).resolve().parents[1] / ".clients/oldest-ansible/bin/ansible-playbook"
"""The oldest that the playbooks are for (`make clients`)."""
if "LOKO_BUILD" in os.environ:
    OLDEST = Path(os.environ["LOKO_BUILD"], *OLDEST.parts[-4:])
