"""Labs as topology files of containerlab, and the errors where that is not possible."""

from __future__ import annotations

import tomllib

import pytest
import yaml

from loko.document import LABS
from loko.topology.lab import Backend, load_lab
from loko_testbed.live.containerlab import deployment
from loko_testbed.live.containerlab.topology import CONTROLLER, controller_address, topology, topology_file
from loko_testbed.simulation.runner import RunError

NAMES = ("two-switch", LABS / "two-switch" / "server.yml", "ring", LABS / "ring" / "five.yml")


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_the_committed_topology_is_what_the_lab_makes_it(name):
    lab = load_lab(name)
    assert topology_file(lab).read_text() == topology(lab), "repeat 'make topologies'"


def test_every_committed_topology_is_of_a_lab():
    examples = set((LABS / "containerlab-examples").iterdir())
    assert sorted(set(LABS.rglob("*.clab.yml")) - examples) == sorted(
        topology_file(load_lab(name)) for name in NAMES
    )


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_a_topology_has_every_node_cable_and_address_of_its_lab(name):
    lab = load_lab(name)
    document = yaml.safe_load(topology(lab))
    nodes = document["topology"]["nodes"]
    assert set(nodes) == {CONTROLLER, *lab.switches, *lab.machines}
    ends = [tuple(link["endpoints"]) for link in document["topology"]["links"]]
    named = {host.name: host.name for host in lab.hosts.values() if host.interface}
    assert ends == [
        tuple(named.get(end.node, f"{end.node}:eth{end.port}") for end in (link.a, link.b))
        for link in lab.links
    ]
    for host in lab.hosts.values():
        node = nodes[host.machine]
        device = host.interface or "eth1"
        assert f"ip link set dev {device} address {host.mac}" in node["exec"]
        assert f"ip address add {host.ip} dev {device}" in node["exec"]
        assert node["network-mode"] == "none", "no second way from host to host"
    addresses = [node["mgmt-ipv4"] for node in nodes.values() if "mgmt-ipv4" in node]
    assert len(set(addresses)) == len(addresses) == len(lab.switches) + 1


def test_a_board_is_configured_as_in_the_lab():
    lab = load_lab("two-switch")
    environment = yaml.safe_load(topology(lab))["topology"]["nodes"]["s2"]["env"]
    [board] = tomllib.loads(environment["CONFIGURATION"])["board"]
    assert board["ports"] == {"1": "eth1", "2": "eth2", "3": "eth3"}
    assert environment["INTERFACES"].split() == list(board["ports"].values())
    assert board["controller"] == controller_address()
    assert board["config"] == lab.switches["s2"].config


def test_a_lab_that_is_virtual_or_has_boards_on_a_network_is_refused(tmp_path):
    with pytest.raises(RunError, match="banana-pi-r1 is in virtual time only"):
        topology(load_lab("two-switch-banana-pi"))
    text = (LABS / "two-switch" / "lab.yml").read_text().replace("control: session", "control: network")
    (tmp_path / "lab.yml").write_text(text)
    with pytest.raises(RunError, match="control: network is not possible in containers"):
        topology(load_lab(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("eth1", "eth0", "server:eth0: in containers eth0 is containerlab's: rename it to eth1"),
        ("eth2", "lo", "server:lo: in containers lo is the loopback: rename it to eth1"),
        ("eth2", "sixteenletterseth", "the interface name 'sixteenletterseth' has more than 15 characters"),
        ("server", "controller", "the container of the controller is called controller, too: rename yours"),
    ],
)
def test_names_that_containers_have_already_or_could_not_have_are_refused(tmp_path, old, new, says):
    (tmp_path / "lab.yml").write_text((LABS / "two-switch" / "server.yml").read_text().replace(old, new))
    with pytest.raises(RunError) as error:
        topology(load_lab(tmp_path))
    assert says in str(error.value)


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """Return a function that writes a script in place of `docker` or another program. No others are found."""
    monkeypatch.setattr(
        deployment, "locate", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    monkeypatch.setattr(deployment, "_MODULES", tmp_path / "modules")

    def program(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return program


def test_what_is_missing_is_one_line_that_says_how_to_mend_it(docker, tmp_path):
    assert "'make containerlab' builds it" in deployment.obstacle()
    docker("containerlab", "echo version: 0.59.0")
    assert "/proc/modules" in deployment.obstacle()
    docker("containerlab", "echo version: 0.59.0+no-modules")
    assert "apt-get install docker.io" in deployment.obstacle()
    docker("containerlab", "exit 0")
    (tmp_path / "modules").touch()
    assert "apt-get install docker.io" in deployment.obstacle()
    docker("docker", "echo 'Cannot connect to the Docker daemon at unix:///x' >&2; exit 1")
    assert "Cannot connect to the Docker daemon at unix:///x: start its service" in deployment.obstacle()
    docker("docker", 'case "$1 $3" in "images loko-testbed/host:latest") ;; *) echo something;; esac')
    assert deployment.obstacle() == "the image loko-testbed/host:latest is missing: 'make images' builds it"
    docker("docker", "echo something")
    assert deployment.obstacle() is None


def test_containers_of_an_earlier_lab_are_named_and_can_be_removed(docker, tmp_path):
    lab = load_lab("two-switch")
    docker("containerlab", "exit 0")
    (tmp_path / "modules").touch()
    log = tmp_path / "log"
    names = '"clab-two-switch-s1\\nclab-two-switch-H1\\n"'
    docker("docker", f'echo "$*" >>{log}; case "$1" in ps) printf {names};; *) echo x;; esac')
    told = r"clab-two-switch-H1, clab-two-switch-s1.*loko lab down two-switch --builder"
    with pytest.raises(RunError, match=told):
        deployment.refuse(lab)
    assert deployment.remove(lab, tmp_path) == ["clab-two-switch-H1", "clab-two-switch-s1"]
    assert "rm --force --volumes clab-two-switch-H1 clab-two-switch-s1" in log.read_text()


def test_other_switches_than_boards_are_refused(docker, tmp_path):
    docker("containerlab", "exit 0")
    docker("docker", 'case "$1" in ps) ;; *) echo x;; esac')
    (tmp_path / "modules").touch()
    with pytest.raises(RunError, match="in containers every switch is an emulated board"):
        deployment.refuse(load_lab("two-switch").with_backend(Backend.OVS))


def test_a_deployment_that_fails_is_removed_and_told_in_one_line(docker, tmp_path):
    (tmp_path / "modules").touch()
    log = tmp_path / "log"
    docker("docker", 'case "$1" in ps) ;; *) echo x;; esac')
    docker(
        "containerlab", f'echo "$1" >>{log}; [ "$1" = destroy ] || {{ echo "no such kernel" >&2; exit 1; }}'
    )
    with pytest.raises(RunError, match="'containerlab deploy' failed: no such kernel"):
        deployment.deploy(load_lab("two-switch"), tmp_path / "state")
    assert log.read_text().split() == ["deploy", "destroy"]
