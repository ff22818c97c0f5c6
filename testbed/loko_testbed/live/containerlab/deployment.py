"""Builds a lab by containerlab, and removes it again.

This happens outside of the confined tree: Docker's daemon makes the containers, and it lives outside.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loko.topology.lab import Backend, Lab
from loko_testbed.instruments.programs import locate
from loko_testbed.instruments.timeouts import VARIABLE, scaled_timeout
from loko_testbed.live.cleanup_process import CleanupProcess
from loko_testbed.live.containerlab.containers import Containers
from loko_testbed.live.containerlab.topology import EMULATOR_IMAGE, HOST_IMAGE, container, topology
from loko_testbed.simulation.runner import RunError

_ANSWER_TIMEOUT_S: Final = 60.0
_DEPLOY_TIMEOUT_S: Final = 120.0
_DEPLOY_TIMEOUT_A_NODE_S: Final = 10.0

_MODULES: Final = Path("/proc/modules")
_WITHOUT_MODULES: Final = "+no-modules"
"""Part of the version of a containerlab that setup/containerlab.sh has built: it needs no list of modules."""

_REMOVE: Final = 'read -r _; exec "$@" >/dev/null 2>&1'
"""Waits until the tree has ended, then removes all containers of the lab."""


def obstacle() -> str | None:
    """Return why this machine cannot build labs in containers, in one line; None if it can."""
    if locate("containerlab") is None:
        return "the program 'containerlab' is missing: 'make containerlab' builds it"
    if not (_MODULES.exists() or _WITHOUT_MODULES in _containerlab("version", timeout_s=_ANSWER_TIMEOUT_S)):
        return (
            "this containerlab needs a kernel with loadable modules (/proc/modules): remove it; "
            "'make containerlab' builds one that does not"
        )
    if reason := no_docker():
        return reason
    missing = [image for image in (EMULATOR_IMAGE, HOST_IMAGE) if not _docker("images", "--quiet", image)]
    if missing:
        return f"the image {' and '.join(missing)} is missing: 'make images' builds it"
    return None


def no_docker() -> str | None:
    """Return why Docker cannot be used, in one line; None if it can."""
    if locate("docker") is None:
        return "the program 'docker' is missing: apt-get install docker.io"
    try:
        _docker("info", "--format", "{{.ServerVersion}}")
    except RunError as error:
        return f"{error}: start its service (systemctl start docker)"
    return None


def refuse(lab: Lab) -> None:
    """Raise `RunError` if the lab cannot be built in containers, or is there already."""
    if any(switch.backend is not Backend.FIRMWARE for switch in lab.switches.values()):
        raise RunError(f"{lab.path}: in containers every switch is an emulated board: leave the backend out")
    if names := remaining_containers(lab):
        raise RunError(
            f"containers of an earlier lab are there ({', '.join(names)}): remove them with "
            f"'loko lab down {lab.name} --builder containerlab'"
        )


def remaining_containers(lab: Lab) -> list[str]:
    """Return the names of a lab's containers, running or not. Raises `RunError`."""
    wanted = f"label=containerlab={lab.name}"
    return sorted(_docker("ps", "--all", "--filter", wanted, "--format", "{{.Names}}").split())


def deploy(lab: Lab, folder: Path) -> CleanupProcess:
    """Build the lab, with its topology in `folder`; return what removes the containers.

    They are removed whatever happens. Raises `RunError` in one line, and then leaves nothing behind.
    """
    refuse(lab)
    file = folder / f"{lab.name}.clab.yml"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(topology(lab), encoding="utf-8")
    timeout_s = _DEPLOY_TIMEOUT_S + _DEPLOY_TIMEOUT_A_NODE_S * (len(lab.switches) + len(lab.machines))
    removal = CleanupProcess("/bin/sh", "-c", _REMOVE, "remove", *_destruction(file))
    try:
        limit = (
            "--timeout",
            f"{scaled_timeout(timeout_s):.0f}s",
        )  # containerlab's own, for each answer of Docker
        _containerlab("deploy", "--topo", str(file), *limit, timeout_s=timeout_s)
    except BaseException:
        removal.wait()
        raise
    return removal


def running_containers(lab: Lab, nodes: Sequence[str]) -> Containers:
    """Return the containers of the nodes. Raises `RunError` if one does not run."""
    names = {container(lab, node): node for node in nodes}
    shown = json.loads(_docker("inspect", *names))
    namespaces = {}
    for node in shown:
        name = str(node["Name"]).removeprefix("/")
        if not node["State"]["Running"]:
            raise RunError(f"{name}: the container has ended: see 'docker logs {name}'")
        namespaces[names[name]] = str(node["NetworkSettings"]["SandboxKey"])
    return Containers(namespaces=namespaces)


def remove(lab: Lab, folder: Path) -> list[str]:
    """Remove the containers of a lab, such as a killed run's, and return their names. Raises `RunError`."""
    names = remaining_containers(lab)
    if names:
        _docker("rm", "--force", "--volumes", *names)
    (folder / f"{lab.name}.clab.yml").unlink(missing_ok=True)
    return names


def in_container(name: str, *command: str) -> str:
    """Run a program in a container and return what it printed. Raises `RunError`."""
    return _docker("exec", name, *command)


def _destruction(file: Path) -> list[str]:
    return [locate("containerlab") or "containerlab", "destroy", "--topo", str(file), "--cleanup"]


def _containerlab(*arguments: str, timeout_s: float) -> str:
    return _run([locate("containerlab") or "containerlab", *arguments], timeout_s=timeout_s)


def _docker(*arguments: str) -> str:
    return _run([locate("docker") or "docker", *arguments], timeout_s=_ANSWER_TIMEOUT_S)


def _run(command: Sequence[str], *, timeout_s: float) -> str:
    what = f"'{Path(command[0]).name} {command[1]}'"
    limit_s = scaled_timeout(timeout_s)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise RunError(
            f"{what} does not answer within {limit_s:g} s: set {VARIABLE} where everything is slow"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise RunError(f"{what} failed: {said}")
    return done.stdout.strip()
