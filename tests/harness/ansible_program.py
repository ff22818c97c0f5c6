"""The Ansible programs that the tests run playbooks with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

OURS = Path(sys.executable).parent / "ansible-playbook"
OLDEST = Path(__file__).resolve().parents[2] / ".clients/oldest-ansible/bin/ansible-playbook"
"""The oldest version of Ansible that the playbooks support (`make clients`)."""
if "LOKO_BUILD" in os.environ:
    OLDEST = Path(os.environ["LOKO_BUILD"], *OLDEST.parts[-4:])
