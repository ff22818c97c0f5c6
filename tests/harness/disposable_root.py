"""A disposable root: overlays over this machine's file system, discarded with all that a test did there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_program import OURS

from benchmarks.builds import BUILD

ROOT = Path(__file__).resolve().parents[2]
CALLBACK = ROOT / "tests/roles/callback"
SURROUNDINGS = (
    f"ANSIBLE_CALLBACK_PLUGINS={shlex.quote(str(CALLBACK))} ANSIBLE_CALLBACKS_ENABLED=outcomes"
    " ANSIBLE_LOCAL_TEMP=/tmp/ansible ANSIBLE_HOME=/tmp/ansible"
)

ENTER = """
set -e
mount --make-rprivate /
mount -t tmpfs -o size={size_mib}m disposable {folder}
cd {folder}
overlays=0
overlay() {{ # an overlay over a folder with what is mounted in it left out, at the same place of the machine
    overlays=$((overlays + 1))
    mkdir -p lower$overlays upper$overlays work$overlays "root$1"
    mount --bind "$1" lower$overlays
    mount -t overlay overlay "root$1" \\
        -o lowerdir=lower$overlays,upperdir=upper$overlays,workdir=work$overlays
}}
overlay /
for place in /dev /sys; do mount --rbind $place root$place; done
mount -t proc proc root/proc
mount -t tmpfs run root/run
mount -t tmpfs tmp root/tmp
for place in {places}; do overlay "$place"; done
mkdir -p root/mnt/shared
mount --bind {shared} root/mnt/shared
ip link set lo up
cd root
exec chroot . /bin/bash -c {script}
"""


def places():
    """Return the folders that the testbed uses and that an overlay of / or the new /tmp could hide."""
    named = [os.environ.get(name, "") for name in ("CARGO_HOME", "RUSTUP_HOME")]
    places = {Path(name).resolve() for name in (ROOT, BUILD, Path.home(), *filter(None, named))}
    return sorted((place for place in places - {Path("/")} if place.is_dir()), key=lambda place: place.parts)


@dataclass(frozen=True)
class Play:
    """The outcome of a playbook."""

    status: int
    tasks: tuple[dict, ...]
    output: str

    def on(self, host):
        """Return the outcome on one of its hosts."""
        return replace(self, tasks=tuple(task for task in self.tasks if task["host"] == host))

    def with_outcome(self, outcome):
        return [task["task"] for task in self.tasks if task["outcome"] == outcome]

    @property
    def changed(self):
        return self.with_outcome("changed")

    @property
    def complaint(self):
        """The message of the task that failed."""
        [failed] = [task for task in self.tasks if task["outcome"] == "failed"]
        return failed["msg"]

    def messages(self):
        return "\n".join(task["msg"] for task in self.tasks)


class DisposableRoot:
    """Runs scripts on such a machine. It has only a loopback network and exists only while a script runs."""

    def __init__(self, folder, *, size_mib=4000):
        self.folder, self.size_mib = folder, size_mib
        self.shared = folder / "shared"
        self.shared.mkdir()

    def run(self, script, *, check=True):
        """Run a script as root; nothing that it changes outside `shared` is kept.

        It starts in the repository; $BUILD is the folder with the files made by set-up.
        """
        place = self.folder / "overlay"
        place.mkdir(exist_ok=True)
        entered = ENTER.format(
            folder=shlex.quote(str(place)),
            shared=shlex.quote(str(self.shared)),
            places=shlex.join(map(str, places())),
            size_mib=self.size_mib,
            script=shlex.quote(
                f"cd {shlex.quote(str(ROOT))}\nexport BUILD={shlex.quote(str(BUILD))}\n{script}"
            ),
        )
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", entered]
        return subprocess.run(command, capture_output=True, text=True, check=check, timeout=800)

    def plays(self, *steps, program=OURS):
        """Run steps in order and return the plays. Strings are shell code, lists are playbook arguments."""
        script, names = ["export LOKO_SETUP_PAUSE_S=0"], []
        for step in steps:
            if isinstance(step, str):
                script.append(step)
                continue
            name = f"play{len(names)}"
            names.append(name)
            words = shlex.join([str(program), *map(str, step)])
            out = f"/mnt/shared/{name}"
            script.append(f"OUTCOMES={out} {SURROUNDINGS} {words} >{out}.log 2>&1; echo $? >{out}.status")
        done = self.run("\n".join(script), check=False)
        plays = []
        for name in names:
            log, tasks = self.shared / f"{name}.log", self.shared / name
            assert tasks.exists(), done.stdout + done.stderr + (log.read_text() if log.exists() else "")
            plays.append(
                Play(
                    status=int((self.shared / f"{name}.status").read_text()),
                    tasks=tuple(json.loads(tasks.read_text())),
                    output=log.read_text(),
                )
            )
        return plays
