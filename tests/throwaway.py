"""A throw-away machine: this one, behind an overlay. What is installed or broken there is gone afterwards."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CALLBACK = ROOT / "tests/roles/callback"
SURROUNDINGS = (
    f"ANSIBLE_CALLBACK_PLUGINS={CALLBACK} ANSIBLE_CALLBACKS_ENABLED=outcomes"
    " ANSIBLE_LOCAL_TEMP=/tmp/ansible ANSIBLE_HOME=/tmp/ansible"
)

ENTER = """
set -e
mount --make-rprivate /
mount -t tmpfs -o size={size_mib}m throw-away {folder}
mkdir {folder}/upper {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
for place in /dev /sys; do mount --rbind $place {folder}/root$place; done
mount -t proc proc {folder}/root/proc
mount -t tmpfs run {folder}/root/run
mkdir -p {folder}/root/mnt/shared
mount --bind {shared} {folder}/root/mnt/shared
mount -t tmpfs tmp {folder}/root/tmp
ip link set lo up
cd {folder}/root
exec chroot . /bin/bash -c {script}
"""


@dataclass(frozen=True)
class Play:
    """What a playbook came to."""

    status: int
    tasks: tuple[dict, ...]
    output: str

    def with_outcome(self, outcome):
        return [task["task"] for task in self.tasks if task["outcome"] == outcome]

    @property
    def changed(self):
        return self.with_outcome("changed")

    @property
    def complaint(self):
        """What the task that failed said."""
        [failed] = [task for task in self.tasks if task["outcome"] == "failed"]
        return failed["msg"]

    def messages(self):
        return "\n".join(task["msg"] for task in self.tasks)


class Throwaway:
    """Scripts for such a machine. It has no network but loopback, and is gone when its script has ended."""

    def __init__(self, folder, *, size_mib=4000):
        self.folder, self.size_mib = folder, size_mib
        self.shared = folder / "shared"
        self.shared.mkdir()

    def run(self, script, *, check=True):
        """Run a script in it as root; nothing of what it does outside of `shared` is kept."""
        place = self.folder / "overlay"
        place.mkdir(exist_ok=True)
        entered = ENTER.format(
            folder=place,
            shared=self.shared,
            size_mib=self.size_mib,
            script=shlex.quote(f"cd {ROOT}\n{script}"),
        )
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", entered]
        return subprocess.run(command, capture_output=True, text=True, check=check, timeout=800)

    def plays(self, *steps):
        """Run steps in turn, strings as shell, lists as words for ansible-playbook; gives the plays."""
        script, names = ["export LOKO_SETUP_PAUSE_S=0"], []
        for step in steps:
            if isinstance(step, str):
                script.append(step)
                continue
            name = f"play{len(names)}"
            names.append(name)
            words = shlex.join([str(Path(sys.executable).parent / "ansible-playbook"), *map(str, step)])
            out = f"/mnt/shared/{name}"
            script.append(f"OUTCOMES={out} {SURROUNDINGS} {words} >{out}.log 2>&1; echo $? >{out}.status")
        done = self.run("\n".join(script), check=False)
        found = []
        for name in names:
            log, tasks = self.shared / f"{name}.log", self.shared / name
            assert tasks.exists(), done.stdout + done.stderr + (log.read_text() if log.exists() else "")
            found.append(
                Play(
                    status=int((self.shared / f"{name}.status").read_text()),
                    tasks=tuple(json.loads(tasks.read_text())),
                    output=log.read_text(),
                )
            )
        return found
