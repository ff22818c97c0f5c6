"""Our examples for netlab and Kathará, as these programs read them; nothing is started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from programs import INSTALLED

from loko.document import LABS

HOME = INSTALLED / "topologies/bin"
IMAGE = "loko-testbed/zodiac-fx:latest"
READ = """
import json, sys
from Kathara.parser.netkit.LabParser import LabParser
machines = LabParser.parse(sys.argv[1]).machines
print(json.dumps({name: {"meta": machine.meta, "links": {
    f"eth{number}": interface.link.name for number, interface in machine.interfaces.items()
}} for name, machine in machines.items()}))
"""

pytestmark = pytest.mark.skipif(
    not HOME.exists(), reason="netlab and Kathará are not installed: run 'make clients'"
)


def run(*command: object, cwd: Path) -> str:
    surroundings = os.environ | {"PATH": f"{HOME}:{os.environ['PATH']}", "HOME": str(cwd)}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_netlab_makes_a_topology_with_the_board_between_the_hosts(tmp_path: Path) -> None:
    shutil.copy(LABS / "netlab-example/topology.yml", tmp_path)
    run("netlab", "create", cwd=tmp_path)
    made = yaml.safe_load((tmp_path / "clab.yml").read_text())
    board = made["topology"]["nodes"]["board"]
    assert (board["kind"], board["image"]) == ("linux", IMAGE)
    network = made["mgmt"]["ipv4-subnet"].removesuffix(".0/24")
    assert board["env"] == {"CONTROLLER": f"{network}.1:6633"}
    ends = [link["endpoints"] for link in made["topology"]["links"]]
    assert ends == [["board:eth1", "h1:eth1"], ["board:eth2", "h2:eth1"]]
    configured = (tmp_path / "node_files/board/initial").read_text()
    assert "addr add" not in configured
    assert "type bridge" not in configured, "the kernel would forward beside the board"


def test_kathara_reads_the_board_between_the_hosts(tmp_path: Path) -> None:
    folder = LABS / "kathara-example"
    machines = json.loads(run(HOME / "python", "-c", READ, folder, cwd=tmp_path))
    assert {name: machine["links"] for name, machine in machines.items()} == {
        "board": {"eth0": "management", "eth1": "left", "eth2": "right"},
        "controller": {"eth0": "management"},
        "h1": {"eth0": "left"},
        "h2": {"eth0": "right"},
    }
    board = machines["board"]["meta"]
    assert board["image"] == IMAGE
    assert board["envs"]["INTERFACES"].split() == ["eth1", "eth2"]
    address = board["envs"]["CONTROLLER"].removesuffix(":6633")
    assert f"address add {address}/24 dev eth0" in (folder / "controller.startup").read_text()
    assert {file.stem for file in folder.glob("*.startup")} == machines.keys()
