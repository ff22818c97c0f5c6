"""Labs in the formats of other programs: `loko lab export`."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest
import yaml
from typer.testing import CliRunner

from loko.document import LABS
from loko.topology.lab import Lab, load_lab
from loko_testbed.cli.main import app

PARALLEL = {
    "name": "parallel",
    "title": 'Two "cables" \\ and a loop',
    "switches": {
        name: {"datapath_id": f"00:00:70:b3:d5:6c:00:0{number}", "profile": "zodiac-fx"}
        for number, name in enumerate(("b", "a"), 1)
    },
    "hosts": {
        name: {"mac": f"02:00:00:00:00:0{number}", "ip": f"10.0.0.{number}/24"}
        for number, name in enumerate("xy", 1)
    },
    "links": [
        {"a": "a:3", "b": "b:4"},
        {"a": "b:2", "b": "a:1"},
        {"a": "x", "b": "a:2"},
        {"a": "b:1", "b": "y"},
    ],
}
"""A lab with parallel cables that are listed from both sides, and ports in no order."""


@pytest.fixture(params=["two-switch", "two-switch/server.yml", "ring/five.yml", "chip-ring", "parallel"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """Return a lab to export."""
    if request.param != "parallel":
        return load_lab(LABS / request.param)
    (tmp_path / "parallel.yml").write_text(yaml.safe_dump(PARALLEL))
    return load_lab(tmp_path / "parallel.yml")


def loko(*words: object, status: int = 0) -> str:
    """Run the command. Return its stdout or, with status 2, its stderr."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == status, done.output
    return done.stderr if status == 2 else done.stdout


def ends(lab: Lab) -> list[list[str]]:
    """Return the cables, each as its two ends, in no order."""
    return sorted(sorted((str(link.a), str(link.b))) for link in lab.links)


@pytest.mark.parametrize(
    ("to", "suffix"), [("graphml", ".graphml"), ("netjson", ".json"), ("containerlab", ".clab.yml")]
)
def test_what_is_exported_comes_back_with_its_names_cables_and_ports(
    lab: Lab, to: str, suffix: str, tmp_path: Path
) -> None:
    if (lab.name, to) == ("chip-ring", "containerlab"):
        (refused,) = loko("lab", "export", lab.path, to, status=2).splitlines()
        assert "is in virtual time only" in refused
        return
    file = tmp_path / f"exported{suffix}"
    loko("lab", "export", lab.path, to, "--out", file)
    profile = next(iter(lab.switches.values())).emulated_as
    loko("lab", "new", "--from", file, "--profile", profile, "--out", tmp_path / "back")
    back = load_lab(tmp_path / "back")
    assert sorted(back.switches) == sorted(lab.switches)
    assert sorted(back.hosts) == sorted(lab.hosts)
    assert ends(back) == ends(lab)


def test_graphml_and_netjson_have_addresses_and_devices() -> None:
    graph = nx.parse_graphml(loko("lab", "export", "two-switch/server.yml", "graphml"))
    document = json.loads(loko("lab", "export", "two-switch/server.yml", "netjson"))
    assert document["type"] == "NetworkGraph"
    nodes = {node["id"]: node["properties"] for node in document["nodes"]}
    assert nodes == dict(graph.nodes(data=True))
    assert nodes["s1"] == {"type": "switch", "datapath_id": "000070b3d56c0001", "profile": "zodiac-fx"}
    assert nodes["server"] == {
        "type": "host",
        "mac": "02:00:00:00:00:02 02:00:00:00:00:04",
        "ip": "10.0.0.2/24 10.0.0.4/24",
    }


def test_dot_shows_each_cable_with_its_ports(lab: Lab) -> None:
    first, *lines, last = loko("lab", "export", lab.path, "dot").splitlines()
    assert (first, last) == (f'graph "{lab.name}" {{', "}")
    text = r'"((?:[^"\\]|\\.)*)"'
    cables = []
    for line in lines:
        edge = re.fullmatch(rf"  {text} -- {text} \[taillabel={text}, headlabel={text}\];", line)
        node = re.fullmatch(rf"  {text} \[shape=(box|ellipse)\];", line)
        assert edge or node or re.fullmatch(rf"  label={text};", line), line
        if node:
            assert node[1] in (lab.switches if node[2] == "box" else lab.machines)
        if edge:
            cables.append(sorted([f"{edge[1]}:{edge[3]}", f"{edge[2]}:{edge[4]}"]))
    named = [
        sorted(
            end.node + (":" if end.node in lab.hosts and ":" not in end.node else "")
            if end.node in lab.hosts
            else str(end)
            for end in (link.a, link.b)
        )
        for link in lab.links
    ]
    assert sorted(cables) == sorted(named)


def script(lab: Lab, file: Path) -> ModuleType:
    """Return the module of an exported script, which Mininet's own Topo builds."""
    loko("lab", "export", lab.path, "mininet", "--out", file)
    specification = importlib.util.spec_from_file_location("exported_lab", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_script_of_mininet_has_every_switch_host_cable_and_address(lab: Lab, tmp_path: Path) -> None:
    topology = script(lab, tmp_path / "script.py").topos[lab.name]()
    assert sorted(topology.switches()) == sorted(lab.switches)
    assert sorted(topology.hosts()) == sorted(lab.machines)
    for name, switch in lab.switches.items():
        assert int(topology.nodeInfo(name)["dpid"], 16) == switch.datapath_id
    for name, (first, *_) in lab.machines.items():
        assert topology.nodeInfo(name) == {"mac": first.mac, "ip": str(first.ip)}
    found = []
    for source, target, values in topology.links(withInfo=True):
        named = []
        for node, number in ((source, 1), (target, 2)):
            if node in lab.switches:
                named.append(f"{node}:{values[f'port{number}']}")
            elif f"intfName{number}" in values:
                named.append(f"{values[f'intfName{number}'].replace('-', ':')}:1")
                host = lab.hosts[values[f"intfName{number}"].replace("-", ":")]
                assert values[f"addr{number}"] == host.mac
                assert values[f"params{number}"] == {"ip": str(host.ip)}
            else:
                named.append(f"{node}:1")
        assert values["bw"] == lab.rate_bps(lab.links[0]) / 1e6
        found.append(sorted(named))
    assert sorted(found) == ends(lab)


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    file = tmp_path / "lab.dot"
    file.write_text("mine")
    assert "is there already" in loko("lab", "export", "two-switch", "dot", "--out", file, status=2)
    assert file.read_text() == "mine"
    loko("lab", "export", "two-switch", "dot", "--out", file, "--force")
    assert file.read_text().startswith("graph")
    missing = tmp_path / "none" / "lab.dot"
    assert "cannot be written" in loko("lab", "export", "two-switch", "dot", "--out", missing, status=2)


def test_what_the_page_prints_is_typed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loko("lab", "new", "ring", "--out", "mine")
    page = (LABS.parent / "docs/own-labs.md").read_text()
    commands = re.findall(r"^    loko (lab export .*)$", page, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        loko(*shlex.split(command, comments=True))
    for file in ("mine/net.graphml", "mine/net.clab.yml"):
        assert "4 switches, 4 hosts" in loko("lab", "new", "--from", file, "--out", f"{file}.back")
