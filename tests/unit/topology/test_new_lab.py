"""The user's own labs: `loko lab new`, `loko flows example`, `loko replay`, and the schemas of files."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from loko.document import LABS, InputError
from loko.notebook_api import plan
from loko.switch_model.device import load_device
from loko.topology.lab import load_lab
from loko.topology.new_lab.containerlab import expand
from loko.topology.new_lab.imported import import_network
from loko.topology.schemas import SCHEMAS, schema_of
from loko_testbed.cli.main import app
from loko_testbed.cli.replay import replay_twice
from loko_testbed.live.interfaces import interface_name

ROOT = Path(__file__).resolve().parents[3]
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="label" attr.type="string" for="node" id="label"/>
<key attr.name="type" attr.type="string" for="node" id="type"/>
<graph edgedefault="undirected">
<node id="0"><data key="label">Bern Ost</data></node><node id="1"><data key="label">Basel</data></node>
<node id="2"><data key="label">PC</data><data key="type">host</data></node>
<edge source="0" target="1"/><edge source="0" target="1"/><edge source="0" target="2"/></graph></graphml>
"""
CASES = ROOT / "tests/cases/import"
NETJSON = {
    "type": "NetworkGraph",
    "nodes": [{"id": "172.16.40.24"}, {"id": "172.16.40.60", "label": "roof"}],
    "links": [{"source": "172.16.40.24", "target": "172.16.40.60", "cost": 1.0}],
}
CLAB = """
topology:
  defaults: {kind: linux}
  nodes: {sw1: {kind: bridge}, sw2: {image: switch}, a:, b: {image: alpine}}
  links:
    - endpoints: ["sw1:eth1", "sw2:eth1"]
    - endpoints: ["a:eth1", "sw1:eth2"]
    - endpoints: ["b:eth1", "sw2:eth2"]
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run each test in a folder of its own, whose path has a space."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def loko(*words, status=0, **options):
    """Run the command. Return its stdout or, with status 2, its stderr."""
    done = CliRunner().invoke(app, [str(word) for word in words], **options)
    assert done.exit_code == status, done.output
    return done.stderr if status == 2 else done.stdout


def in_one_line(told, *parts):
    lines = [line for line in told.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, told
    assert all(part in lines[0] for part in parts), told
    return lines[0]


def test_a_new_ring_goes_all_the_way_from_another_folder():
    loko("lab", "new", "ring", "--switches", "4", "--out", "my lab")
    loko("flows", "example", "my lab", "--out", "my lab/flows.yml")
    assert "4 of 4 fit" in loko("plan", "my lab", "my lab/flows.yml")
    assert "every guarantee was kept" in loko("replay", "my lab", "my lab/flows.yml", "--seconds", "0.2")


@pytest.mark.parametrize(
    ("words", "switches", "hosts"),
    [
        (["line", "--switches", "1", "--hosts", "2"], 1, 2),
        (["line", "--switches", "3", "--hosts", "2"], 3, 6),
        (["ring", "--hosts", "2"], 4, 8),
        (["ring", "--switches", "3", "--rate", "95 Mbit/s", "--hosts", "3"], 3, 9),
        (["tree", "--switches", "7"], 7, 4),
        (["tree", "--switches", "4", "--fanout", "3", "--hosts", "3"], 4, 9),
        (["line", "--switches", "300", "--hosts", "1"], 300, 300),
    ],
)
def test_shapes_are_as_large_as_was_asked_for(words, switches, hosts):
    loko("lab", "new", *words, "--out", "mine")
    lab = load_lab("mine")
    assert (len(lab.switches), len(lab.hosts), lab.name) == (switches, hosts, "mine")
    assert lab.control_port == 4 * (words == ["ring"])


def test_whoever_gives_nothing_is_asked():
    loko("lab", "new", "--out", "asked", input="tree\n3\n2\n")
    assert (len(load_lab("asked").switches), len(load_lab("asked").hosts)) == (3, 4)
    assert not Path("line").exists()
    in_one_line(loko("lab", "new", input="", status=2), "no shape given")
    in_one_line(loko("lab", "new", input="star\n", status=2), "shape 'star': choose line, ring or tree")


def test_networks_of_other_programs_are_read():
    Path("net.graphml").write_text(GRAPHML)
    Path("net.json").write_text(json.dumps(NETJSON))
    Path("net.clab.yml").write_text(CLAB)
    for name, switches, hosts, cables in (
        ("net.graphml", {"Bern-Ost", "Basel"}, {"PC"}, 3),
        ("net.json", {"172.16.40", "roof"}, {"h1", "h2"}, 3),
        ("net.clab.yml", {"sw1", "sw2"}, {"a", "b"}, 3),
    ):
        loko("lab", "new", "--from", name, "--out", "found", "--force")
        lab = load_lab("found")
        assert (set(lab.switches), set(lab.hosts), len(lab.links)) == (switches, hosts, cables)


@pytest.mark.parametrize(
    ("file", "switches", "hosts", "cables", "says"),
    [
        ("accents.graphml", "Zurich Evry Avila", "h1 h2 h3", 5, "  Evry    Évry (1)"),
        ("both-arcs.graphml", "1 2 3", "00-00-00 00-00-0-2", 5, "10 arcs are 5 cables"),
        ("cjk-label.graphml", "HeXin JieRu", "h1 h2", 3, "  JieRu  接入 (1)"),
        (
            "same-label.graphml",
            "Springfie Shelbyvil Springf-2",
            "h1 h2 h3",
            5,
            "  Springf-2  Springfield",
        ),
        ("unknown-label.graphml", "Springfie 1", "h1 h2", 3, "  1          ? (1)"),
        ("doubled-edges.gml", "Geneve Geneve-2 9", "h1 h2 h3", 6, "  Geneve-2  Genève (8)"),
        ("directed.sndlib.txt", "Northtown Southtown Easttown", "h1 h2 h3", 5, "3 arcs are 2 cables"),
        ("undirected.sndlib.xml", "Northtown Southtown", "h1 h2", 4, ""),
        ("yed-groups.graphml", "core1 edge1 edge2", "h1 h2 h3", 5, ""),
        ("envvar.clab.yml", "s1", "a", 1, ""),
        ("extended.clab.yml", "s1", "a b", 2, ""),
        ("kind-labels.clab.yml", "s1 s2", "c1:eth1 c1:eth2 c2", 4, ""),
        ("mgmt.clab.yml", "s1", "a", 1, "the link at s1:eth2 and mgmt-net:s1-eth2 leaves the lab; left out"),
        ("tohost.clab.yml", "s1", "a", 1, "the link at s1:eth2 and host:uplink1 leaves the lab; left out"),
    ],
)
def test_files_as_they_are_found_are_read(file, switches, hosts, cables, says):
    told = loko("lab", "new", "--from", CASES / file, "--out", "found")
    lab = load_lab("found")
    assert (" ".join(lab.switches), " ".join(lab.hosts)) == (switches, hosts)
    assert len(lab.links) == cables
    assert says in told
    assert ("other names" in told) == (says.startswith("  ") or "arcs are" in says)


def test_every_kept_file_is_tried():
    """A file that is added to the cases needs its right answer here."""
    tried = Path(__file__).read_text()
    assert [file.name for file in CASES.iterdir() if f'"{file.name}"' not in tried] == []


def test_of_a_network_in_parts_the_largest_is_taken_as_the_refusal_advises():
    words = ["lab", "new", "--from", CASES / "two-parts.graphml", "--out", "found"]
    refused = in_one_line(
        loko(*words, status=2), "is in 2 parts that no cable connects (Harbour and 2 more, Island)"
    )
    (advice,) = re.findall(r"take only the largest \((--[a-z-]+)\)", refused)
    told = loko(*words, advice)
    assert "not in the largest part, left out: Island" in told
    lab = load_lab("found")
    assert [*lab.switches] == ["Harbour", "Station", "h1"]
    assert [*lab.hosts] == ["h1-2", "h2", "h3"]
    in_one_line(loko("lab", "new", "ring", advice, status=2), "--largest-part: is for networks of --from")


def test_ports_are_those_of_the_file_where_a_switch_can_have_them():
    """Ports are taken as named; an end without a name gets the lowest free port."""
    names = {"a": ["eth4", "eth2", "e1-1"], "b": ["eth9", "eth1"], "c": ["eth2", "eth2"]}
    links = [("a", "b"), ("a", "c"), ("a", "x"), ("b", "x"), ("c", "x")]
    left = {node: iter(interfaces) for node, interfaces in names.items()} | {
        "x": iter(["eth7", "eth8", "eth9"])
    }
    document = {
        "topology": {
            "nodes": {node: {"kind": "bridge"} for node in "abc"} | {"x": {"labels": {"role": "host"}}},
            "links": [{"endpoints": [f"{end}:{next(left[end])}" for end in ends]} for ends in links],
        }
    }
    Path("net.clab.yml").write_text(yaml.safe_dump(document))
    loko("lab", "new", "--from", "net.clab.yml", "--out", "found")
    ports: dict[str, list[int]] = {node: [] for node in names}
    for link in load_lab("found").links:
        for end in (link.a, link.b):
            if end.node in ports:
                ports[end.node].append(end.port)
    assert ports == {"a": [4, 2, 1], "b": [1, 2], "c": [1, 2]}


def test_names_are_unique_and_short_enough_for_the_interfaces_of_linux():
    labels = ["a b", "a-b", "x" * 30, "x" * 31, "?", "", "Straße", "Łódź", "Ørsted"]
    nodes = [{"id": f"{number}", "label": label} for number, label in enumerate(labels)]
    links = [{"source": "0", "target": f"{number}"} for number in range(1, len(labels))]
    Path("net.json").write_text(json.dumps({"type": "NetworkGraph", "nodes": nodes, "links": links}))
    loko("lab", "new", "--from", "net.json", "--out", "found", "--rate", "1 Gbit/s", "--ports", "20")
    lab = load_lab("found")
    assert [*lab.switches] == ["a-b", "a-b-2", "x" * 9, "x" * 7 + "-2", "4", "5", "Strasse", "Lodz", "Orsted"]
    for host in lab.hosts.values():
        assert interface_name(host.device, node=host.name, where="found")


def test_cables_of_a_routing_protocol_and_loops():
    """Links that are listed from both sides are one cable; two of them are two, and loops are left out."""
    arcs = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "c"), ("c", "c")]
    links = [{"source": source, "target": target} for source, target in arcs]
    network = {"type": "NetworkGraph", "nodes": [{"id": node} for node in "abc"], "links": links}
    Path("net.json").write_text(json.dumps(network))
    told = loko("lab", "new", "--from", "net.json", "--out", "found")
    assert "5 arcs are 4 cables" in told
    assert "a cable leads from 'c' to itself; left out" in told
    between = [(link.a.node, link.b.node) for link in load_lab("found").links]
    assert [ends for ends in between if ends[0] in "abc"] == [("a", "b"), ("a", "b"), ("b", "c")]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("$A ${A} ${A:-x} ${A+x}", "1 1 1 x"),
        ("${B} $B ${B-x} ${B:-x} ${B=x} ${B:=x}", "${B} $B x x x x"),
        ("[${B+x}] [${E-x}] [${E:-x}] [${E:+x}] [${E+x}]", "[] [] [x] [] [x]"),
        ("${B:-$A} $$A", "1 $A"),
    ],
)
def test_variables_are_replaced_as_in_containerlab(written, read):
    assert expand(written, {"A": "1", "E": ""}) == read


def test_a_group_hands_down_what_its_kind_does_not():
    Path("net.clab.yml").write_text(
        "topology:\n"
        "  defaults: {kind: bridge}\n"
        "  kinds: {linux: {labels: {role: router}}}\n"
        "  groups: {clients: {kind: linux, labels: {role: host}}}\n"
        "  nodes: {s1: , a: {group: clients}, b: {kind: linux}}\n"
        "  links:\n"
        "    - endpoints: ['a:eth1', 's1:eth1']\n"
        "    - endpoints: ['b:eth1', 's1:eth2']\n"
        "    - endpoints: ['b:eth2', 's1:eth3']\n"
        "    - {type: macvlan, endpoint: {node: s1, interface: eth4}, host-interface: eth0}\n"
    )
    told = loko("lab", "new", "--from", "net.clab.yml", "--out", "found")
    assert "the link at s1:eth4 leaves the lab; left out" in told
    lab = load_lab("found")
    assert (list(lab.switches), list(lab.hosts)) == (["s1", "b"], ["a"])


def test_a_cable_to_a_group_is_refused():
    text = (CASES / "yed-groups.graphml").read_text().replace('target="n1"', 'target="n0"')
    Path("net.graphml").write_text(text)
    refused = loko("lab", "new", "--from", "net.graphml", "--out", "found", status=2)
    in_one_line(refused, "a cable leads to the group 'n0'; lead it to a node of the group")


def test_a_host_with_several_cables_gets_an_interface_for_each():
    nodes = [{"id": "a"}, {"id": "b"}, *({"id": host, "properties": {"type": "host"}} for host in "xyz")]
    links = [("x", "a"), ("y", "a"), ("a", "b"), ("b", "y"), ("z", "b")]
    network = {"type": "NetworkGraph", "nodes": nodes}
    network["links"] = [{"source": source, "target": target} for source, target in links]
    Path("net.json").write_text(json.dumps(network))
    loko("lab", "new", "--from", "net.json", "--out", "found")
    lab = load_lab("found")
    assert list(lab.hosts) == ["x", "y:eth1", "y:eth2", "z"]
    assert [[end.node for _, end in lab.neighbours(name)] for name in lab.hosts] == [
        ["a"],
        ["a"],
        ["b"],
        ["b"],
    ]
    network["links"].remove({"source": "a", "target": "b"})
    Path("net.json").write_text(json.dumps(network))
    refused = loko("lab", "new", "--from", "net.json", "--out", "found", "--force", status=2)
    in_one_line(refused, "is in 2 parts that no cable connects (a, b)")


@pytest.mark.parametrize("name", ["two-switch/topology", "two-switch/server", "ring/five"])
def test_a_lab_that_went_to_containerlab_comes_back_with_its_hosts_and_cables(name):
    lab = load_lab(LABS / f"{name.replace('topology', 'lab')}.yml")
    loko("lab", "new", "--from", LABS / f"{name}.clab.yml", "--out", "back")
    back = load_lab("back")
    assert (list(back.switches), list(back.hosts)) == (list(lab.switches), list(lab.hosts))
    for host in lab.hosts:
        assert [end.node for _, end in back.neighbours(host)] == [end.node for _, end in lab.neighbours(host)]


def test_interfaces_are_called_as_in_containerlab_whichever_cable_comes_first():
    document = yaml.safe_load((LABS / "two-switch/server.clab.yml").read_text())
    document["topology"]["links"].reverse()
    Path("net.clab.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    told = loko("lab", "new", "--from", "net.clab.yml", "--out", "back")
    assert "2 switches, 3 hosts" in told
    back = load_lab("back")
    assert [far.node for name in ("server:eth1", "server:eth2") for _, far in back.neighbours(name)] == [
        "s1",
        "s2",
    ]


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("x.graphml", "no graph", ["x.graphml: is not GraphML", "syntax error"]),
        ("x.graphml", "<graphml/>", ["x.graphml: is not GraphML"]),
        ("x.gml", "graph [ node [ id 1 ]", ["x.gml: is not GML"]),
        ("x.gml", "graph [ node [ label 1 ] ]", ["x.gml: is not GML"]),
        ("x.txt", "?SNDlib native format; type: network\nNODES (\n)\n", ["x.txt: has no section LINKS"]),
        ("x.xml", "<network xmlns='http://sndlib.zib.de/network'>", ["x.xml: is not XML"]),
        ("x.json", "[]", ["x.json", "must be keys with values"]),
        (
            "x.json",
            (CASES / "collection.json").read_text(),
            ["type 'NetworkCollection'; give"],
        ),
        ("x.json", (CASES / "devmon.json").read_text(), ["type 'DeviceMonitoring'; give a NetworkGraph"]),
        ("x.json", '{"type": "NetworkGraph", "nodes": [{"id": "a"}]}', ["x.json:1: links: is missing"]),
        (
            "x.yml",
            "topology: {nodes: {a: }, links: [{endpoints: ['a:1']}]}",
            ["x.yml:1", "has 1 endpoints; give two"],
        ),
        ("x.yml", "topology: {nodes: {a: }}\nlinks: []", ["x.yml:1: links belongs in topology; move it"]),
        ("x.yml", "topology: {nodes: {a: }, link: []}", ["topology.link: unknown key", "mean 'links'?"]),
        (
            "x.yml",
            "topology: {nodes: {a: }, links: [{endpoints: ['a:1', 'b:1']}]}",
            ["'b', which is no node"],
        ),
        (
            "x.yml",
            "topology: {nodes: {a: {kind: bridge}, b: {kind: bridge}}}",
            ["is in 2 parts that no cable connects (a, b)"],
        ),
        ("x.yml", "topology: {nodes: {}}", ["x.yml: has no switch"]),
        ("x.txt", "", ["x.txt: is none of GraphML"]),
        (
            "x.json",
            NETJSON | {"nodes": [{"id": "a"}, {"id": "a"}], "links": []},
            ["two nodes have the id 'a'"],
        ),
        (
            "x.json",
            {
                "type": "NetworkGraph",
                "nodes": [{"id": "hub"}, *({"id": str(n)} for n in range(4))],
                "links": [{"source": "hub", "target": str(n)} for n in range(4)],
            },
            ["hub needs 5 ports, and zodiac-fx has 4"],
        ),
    ],
)
def test_what_is_no_network_is_refused_in_a_line_and_nothing_is_written(elsewhere, file, text, says):
    Path(file).write_text(text if isinstance(text, str) else json.dumps(text))
    in_one_line(loko("lab", "new", "--from", file, "--out", "mine", status=2), *says)
    assert [path.name for path in elsewhere.iterdir()] == [file]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ring", "--switches", "2"], "a ring has 3 to 4000"),
        (["line", "--hosts", "0"], "--hosts 0: choose 1 to 250"),
        (["line", "--switches", "3", "--hosts", "3"], "s2 needs 5 ports, and zodiac-fx has 4"),
        (["ring", "--from", "x.json"], "both say what the network is"),
        (["--from", "none.json"], "no such file"),
        (["ring", "--profile", "abacus"], "no such name and no such file"),
        (["ring", "--profile", "s9=ideal-1g"], "--profile s9=…: no switch has such a name (s1, s2, s3, s4)"),
        (["ring", "--profile", "ideal-1g", "--profile", "zodiac-fx"], "both are for all switches"),
        (["ring", "--profile", "zodiac-fx", "--rate", "1 Mbit/s"], "both say what the device is"),
        (["ring", "--rate", "95"], "--rate: '95' is not a rate such as 2.3 Mbit/s"),
        (["ring", "--rate", "1 Mbit/s", "--buffer", "many"], "--buffer: 'many' is not a size"),
        (["ring", "--name", "My Lab"], "use small letters"),
    ],
)
def test_wrong_choices_are_one_line_and_nothing_is_written(elsewhere, words, says):
    in_one_line(loko("lab", "new", *words, status=2), says)
    assert list(elsewhere.iterdir()) == []


PROFILED = {
    "graphml": GRAPHML.replace(
        "<graph edge", '<key attr.name="profile" for="node" id="profile"/>\n<graph edge'
    )
    .replace("Bern Ost</data>", 'Bern Ost</data><data key="profile">dell-s3048-on</data>')
    .replace('attr.name="profile" for', 'attr.name="profile" attr.type="string" for'),
    "json": json.dumps(
        {
            **NETJSON,
            "nodes": [
                {"id": "Bern-Ost", "properties": {"profile": "dell-s3048-on"}},
                {"id": "Basel"},
                {"id": "PC", "properties": {"type": "host"}},
            ],
            "links": [
                {"source": "Bern-Ost", "target": other, "cost": 1.0} for other in ("Basel", "Basel", "PC")
            ],
        }
    ),
    "clab.yml": yaml.safe_dump(
        {
            "topology": {
                "nodes": {
                    "Bern-Ost": {"kind": "bridge", "labels": {"profile": "dell-s3048-on"}},
                    "Basel": {"kind": "bridge"},
                    "PC": {"kind": "linux"},
                },
                "links": [
                    {"endpoints": ["Bern-Ost:eth1", "Basel:eth1"]},
                    {"endpoints": ["Bern-Ost:eth2", "PC:eth1"]},
                ],
            }
        }
    ),
}


@pytest.mark.parametrize("suffix", PROFILED)
def test_a_file_names_the_profile_of_a_switch(suffix):
    Path(f"net.{suffix}").write_text(PROFILED[suffix])
    loko("lab", "new", "--from", f"net.{suffix}", "--out", "found")
    found = {name: switch.profile.name for name, switch in load_lab("found").switches.items()}
    assert found == {"Bern-Ost": "dell-s3048-on", "Basel": "zodiac-fx"}
    words = ["--profile", "Ba*=ideal-1g", "--profile", "B*=nec-pf5240"]
    loko("lab", "new", "--from", f"net.{suffix}", "--out", "other", *words)
    found = {name: switch.profile.name for name, switch in load_lab("other").switches.items()}
    assert found == {"Bern-Ost": "nec-pf5240", "Basel": "ideal-1g"}


def test_an_exported_lab_keeps_the_devices_of_its_switches():
    loko("lab", "new", "line", "--switches", "3", "--profile", "s2=ideal-1g", "--out", "mine")
    for form in ("graphml", "netjson"):
        file = f"net.{'json' if form == 'netjson' else form}"
        loko("lab", "export", "mine", form, "--out", file)
        loko("lab", "new", "--from", file, "--out", form)
        found = {name: switch.profile.name for name, switch in load_lab(form).switches.items()}
        assert found == {"s1": "zodiac-fx", "s2": "ideal-1g", "s3": "zodiac-fx"}
    loko("flows", "example", "graphml", "--out", "flows.yml")
    assert json.loads(loko("plan", "graphml", "flows.yml", "--json"))["scheme"] == "mixed"


def test_an_exported_lab_keeps_the_speeds_of_its_cables():
    loko("lab", "new", "line", "--switches", "2", "--profile", "ideal-1g", "--out", "mine")
    told = yaml.safe_load(Path("mine/lab.yml").read_text())
    told["hosts"]["h1"]["speed"] = "100 Mbit/s"
    trunk = next(link for link in told["links"] if link["a"].startswith("s"))
    trunk["speed"] = "10 Mbit/s"
    Path("mine/lab.yml").write_text(yaml.safe_dump(told))
    for form in ("graphml", "netjson"):
        file = f"net.{'json' if form == 'netjson' else form}"
        loko("lab", "export", "mine", form, "--out", file)
        loko("lab", "new", "--from", file, "--hosts", "1", "--out", form)
        lab = load_lab(form)
        assert lab.port_rate_bps("h1", 1) == 100_000_000
        assert lab.port_rate_bps("h2", 1) == 1_000_000_000
        assert lab.slowest_rate_bps("s2") == 10_000_000
    loko("lab", "draw", "mine", "--out", "mine.svg")
    drawn = Path("mine.svg").read_text()
    assert all(f">{speed}bit/s<" in drawn for speed in ("10 M", "100 M", "1 G"))


def test_what_is_there_is_replaced_only_by_force():
    loko("lab", "new", "ring")
    loko("flows", "example", "ring", "--out", "ring/flows.yml")
    before = Path("ring/lab.yml").read_bytes()
    in_one_line(
        loko("lab", "new", "line", "--out", "ring", status=2), "ring/lab.yml: is there already", "--force"
    )
    in_one_line(
        loko("flows", "example", "ring", "--out", "ring/flows.yml", status=2), "is there already", "--force"
    )
    assert Path("ring/lab.yml").read_bytes() == before
    loko("lab", "new", "line", "--out", "ring", "--force")
    assert Path("ring/lab.yml").read_bytes() != before


def test_a_profile_beside_the_lab_is_found_from_anywhere(tmp_path, monkeypatch):
    loko("lab", "new", "line", "--rate", "95 Mbit/s", "--out", "mine")
    again = tmp_path / "elsewhere"
    again.mkdir()
    lab = Path("mine").resolve()
    monkeypatch.chdir(again)
    assert load_lab(lab).switches["s1"].emulated_as == str(lab / "device.toml")
    loko("lab", "new", "ring", "--profile", lab / "device.toml", "--out", "other/ring")
    told = yaml.safe_load(Path("other/ring/lab.yml").read_text())
    assert told["switches"]["s1"]["profile"] == "../../../a folder/mine/device.toml"
    assert load_lab("other/ring").switches["s1"].profile.name == "mine-device"


def test_the_short_form_of_a_ring_takes_another_device():
    loko("lab", "new", "ring", "--rate", "95 Mbit/s", "--out", "mine")
    ring = {"switches": 3, "hosts_per_switch": 2, "profile": "device.toml"}
    Path("mine/lab.yml").write_text(yaml.safe_dump({"name": "mine", "title": "Short", "ring": ring}))
    loko("flows", "example", "mine", "--out", "flows.yml")
    assert "every guarantee was kept" in loko("replay", "mine", "flows.yml", "--seconds", "0.1")


def test_without_a_control_port_all_four_ports_of_a_board_carry_flows():
    loko("lab", "new", "line", "--switches", "1", "--hosts", "4", "--out", "star")
    assert load_lab("star").switches["s1"].config["openflow_ports"] == [1, 2, 3, 4]
    loko("flows", "example", "star", "--out", "flows.yml")
    told = json.loads(loko("replay", "star", "flows.yml", "--seconds", "0.2", "--json"))
    assert all(flow["sent"] and not flow["lost"] for run in told["runs"] for flow in run["flows"])


def test_a_replay_says_which_guarantees_are_broken():
    flows = LABS / "two-switch/flows.yml"
    told = loko("replay", "two-switch", flows, "--scheme", "silo", "--seconds", "0.2", status=1)
    assert "broken: H1-H3, H3-H1" in told
    assert "refused, and sent nothing: 2" in told
    assert "every guarantee was kept" in loko(
        "replay", "two-switch", flows, "--scheme", "packets", "--seconds", "0.2"
    )
    wrong = loko("replay", "two-switch", flows, "--allocation", "half", status=2)
    in_one_line(wrong, "allocation 'half' is unknown")


BUFFERS = ["16 frames", "6 kB"]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("rate", ["8 Mbit/s", "95 Mbit/s", "400 Mbit/s"])
def test_no_packet_of_a_simple_device_is_later_than_its_guarantee(rate, buffer, seed):
    loko(
        *("lab", "new", "line", "--switches", "2", "--hosts", "3", "--out", "mine"),
        *("--rate", rate, "--buffer", buffer, "--latency", "30 us"),
    )
    flows = [
        {
            "id": f"{source}-{destination}",
            "source": source,
            "destination": destination,
            "udp_source": 5000,
            "udp_destination": 6000,
            "rate": "300 kbit/s",
            "burst": f"{1 + number % 2} frames",
            "frame": f"{size} bytes",
        }
        for number, (source, destination, size) in enumerate(
            [("h1a", "h2a", 1000), ("h1b", "h2a", 300), ("h1c", "h2b", 300), ("h2c", "h2a", 1000)]
        )
    ]
    Path("flows.yml").write_text(yaml.safe_dump(flows))
    planned = plan("mine", "flows.yml", allocation="full-rate")
    results = replay_twice(planned.lab, planned, seconds=0.5, seed=seed)
    assert len(planned.accepted) >= 2
    assert all(flow.kept and flow.sent for result in results for flow in result.flows)


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("rate", [8, 95, 400])
def test_a_simple_device_that_is_full_is_nearly_as_late_as_its_guarantee(rate, buffer):
    """The bursts of all flows of a full switch meet at one port."""
    loko(
        *("lab", "new", "line", "--switches", "1", "--hosts", "6", "--out", "mine"),
        *("--rate", f"{rate} Mbit/s", "--buffer", buffer, "--latency", "30 us"),
    )
    many = [
        {
            "id": f"f{number}",
            "source": f"h1{'abcde'[number % 5]}",
            "destination": "h1f",
            "udp_source": 5000 + number,
            "udp_destination": 6000,
            "rate": f"{15 * rate} kbit/s",
            "burst": f"{1 + number % 2} frames",
            "frame": "300 bytes",
        }
        for number in range(20)
    ]
    Path("flows.yml").write_text(yaml.safe_dump(many))
    planned = plan("mine", "flows.yml", allocation="full-rate")
    assert planned.refused
    results = replay_twice(planned.lab, planned, seconds=0.5, seed=1)
    assert all(flow.kept and flow.sent for result in results for flow in result.flows)
    assert max(result.worst for result in results) > 0.6


def test_bursts_that_the_buffer_cannot_hold_are_refused():
    loko("lab", "new", "line", "--switches", "1", "--hosts", "2", "--out", "mine", "--rate", "1 Mbit/s")
    flow = {"udp_source": 1, "udp_destination": 2, "rate": "100 kbit/s", "frame": "306 bytes"}
    ends = {"id": "f", "source": "h1a", "destination": "h1b"}
    for burst, fits in (("60 frames", True), ("64 frames", False)):
        Path("flows.yml").write_text(yaml.safe_dump([{**ends, **flow, "burst": burst}]))
        assert bool(plan("mine", "flows.yml").accepted) is fits


@pytest.mark.parametrize("buffer", ["40 packets", "40 frames", "20 kB"])
def test_a_buffer_in_packets_holds_so_many_of_any_size_and_one_in_bytes_so_many_bytes(buffer):
    loko("lab", "new", "line", "--out", "mine", "--rate", "8 Mbit/s", "--buffer", buffer)
    for size_bytes in (100, 500):
        told = json.loads(loko("model", "mine/device.toml", "--packet-size", size_bytes, "--json"))
        assert told["capacity_bytes"] == (20_000 if buffer == "20 kB" else 40 * size_bytes)


def test_the_model_of_a_simple_device_is_the_documented_one():
    loko(
        "lab",
        "new",
        "line",
        "--out",
        "mine",
        "--rate",
        "80 Mbit/s",
        "--latency",
        "30 us",
        "--buffer",
        "10 frames",
    )
    told = json.loads(loko("model", "mine/device.toml", "--packet-size", "500", "--json"))
    assert told["rate_bps"] == pytest.approx(80e6)
    assert told["capacity_bytes"] == 5000
    # a frame in the server, the latency, the sender's wire (100 Mbit/s, preamble and gap), and l/R
    assert told["latency_ns"] == pytest.approx(50_000 + 30_000 + 41_600 + 50_000)
    slow = json.loads(loko("model", "mine/device.toml", "--packet-size", "64", "--json"))
    assert slow["rate_bps"] == pytest.approx(100e6 * 64 / 84)  # the wire is slower


@pytest.mark.parametrize("words", [["--scheme", "packets"], ["--openflow", "1.3"]])
def test_what_a_simple_device_cannot_be_asked_is_one_line(words):
    loko("lab", "new", "ring", "--out", "mine", "--rate", "80 Mbit/s")
    loko("flows", "example", "mine", "--out", "flows.yml")
    in_one_line(loko("plan", "mine", "flows.yml", *words, status=2), "mine-device")


def test_a_changed_number_outside_its_range_is_warned_of(tmp_path):
    text = (ROOT / "switch-emulator/profiles/zodiac-fx.toml").read_text()
    path = tmp_path / "slower.toml"
    path.write_text(text.replace("base_ps = { value = 30_700_000", "base_ps = { value = 60_000_000", 1))
    with pytest.warns(
        UserWarning, match=r"slower\.toml: cpu\.base_ps: value 60000000 lies outside its range"
    ):
        slower = load_device(path)
    assert slower.cpu.base_ps.value == 60_000_000


@pytest.mark.parametrize("what", SCHEMAS)
def test_the_schema_that_is_kept_is_that_of_the_models(what):
    kept = json.loads((LABS / f"schemas/{what}.json").read_text())
    assert kept == schema_of(what), f"run: loko schema {what} > labs/schemas/{what}.json"
    jsonschema.Draft202012Validator.check_schema(kept)


def test_the_schemas_take_what_the_commands_take_and_refuse_what_they_refuse():
    labs = jsonschema.Draft202012Validator(schema_of("lab"))
    for path in (*LABS.glob("*/lab.yml"), LABS / "ring/five.yml", LABS / "two-switch/server.yml"):
        assert list(labs.iter_errors(_as_json(path))) == [], path
    loko("lab", "new", "tree", "--switches", "3", "--out", "mine")
    loko("flows", "example", "mine", "--out", "mine/flows.yml")
    made = _as_json(Path("mine/lab.yml"))
    assert labs.is_valid(made)
    assert not labs.is_valid({**made, "swtiches": {}})
    assert not labs.is_valid({key: value for key, value in made.items() if key != "links"})
    flows = jsonschema.Draft202012Validator(schema_of("flows"))
    asked = _as_json(Path("mine/flows.yml"))
    assert flows.is_valid(asked)
    assert flows.is_valid(_as_json(LABS / "two-switch/flows.yml"))
    assert not flows.is_valid([{**asked[0], "rate": 5}])
    assert not flows.is_valid([{**asked[0], "deadlin": "5 ms"}])
    profiles = jsonschema.Draft202012Validator(schema_of("profile"))
    for path in (ROOT / "switch-emulator/profiles").glob("*.toml"):
        assert profiles.is_valid(json.loads(json.dumps(tomllib.loads(path.read_text())))), path


def test_new_files_name_the_schemas_beside_them():
    loko("lab", "new", "line", "--out", "mine")
    loko("flows", "example", "mine", "--out", "mine/flows.yml")
    for what in ("lab", "flows"):
        first = Path(f"mine/{what}.yml").read_text().splitlines()[0]
        schema = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
        assert json.loads((Path("mine") / schema.group(1)).read_text()) == schema_of(what)


def test_the_reference_page_names_every_key():
    page = (ROOT / "docs/own-labs.md").read_text()
    lab, flows = schema_of("lab"), schema_of("flows")
    keys = [*lab["properties"], *lab["$defs"]["Ring"]["properties"]]
    for part in ("SwitchFile", "HostFile", "MultihomedHostFile", "LinkFile"):
        keys += lab["$defs"][part]["properties"]
    keys += flows["$defs"]["RequestDocument"]["properties"]
    assert [key for key in keys if f"`{key}`" not in page and f"`{key}:" not in page] == []


def test_a_file_that_is_not_there_is_told_of():
    with pytest.raises(InputError, match="no such file"):
        import_network(Path("none.graphml"), name="x", environment={})


def _as_json(path):
    return json.loads(json.dumps(yaml.safe_load(path.read_text())))


def test_what_the_pages_print_is_typed_in():
    text = (ROOT / "docs/own-labs.md").read_text()
    block = text.partition("\n    loko lab new")[2].partition("\n\n")[0]
    words = [shlex.split(line, comments=True) for line in f"loko lab new{block}".splitlines()]
    assert [typed[:2] for typed in words] == [["loko", it] for it in ("lab", "flows", "plan", "replay")]
    for typed in words:
        loko(*typed[1:])
    devices = (ROOT / "docs/devices.md").read_text()
    (line,) = set(re.findall(r"`loko (lab new line --rate [^`]+)`", devices))
    loko(*shlex.split(line))
