"""Hosts with several interfaces: in lab files, in plans, and in virtual time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from loko.document import LABS, InputError
from loko.notebook_api import plan
from loko.switch_model.flow import Flow
from loko.topology.lab import Endpoint, load_lab
from loko.topology.network import RoutedFlow, shortest_path
from loko_testbed.cli.main import app
from loko_testbed.simulation.runner import LOST, RunRecords
from loko_testbed.simulation.traffic import Releases, Sender, flow_of
from loko_testbed.simulation.virtual import VirtualRunner

FILE = LABS / "two-switch/server.yml"
SOURCE = FILE.read_text()
LAB = load_lab(FILE)
FRAME_BYTES = 306
SLOT_NS = (8 + FRAME_BYTES + 12) * 80


def test_each_interface_has_its_own_cable_and_addresses_and_they_make_one_machine() -> None:
    assert list(LAB.hosts) == ["H1", "H3", "server:eth1", "server:eth2"]
    assert {name: [host.name for host in interfaces] for name, interfaces in LAB.machines.items()} == {
        "H1": ["H1"],
        "H3": ["H3"],
        "server": ["server:eth1", "server:eth2"],
    }
    assert LAB.peer(Endpoint(node="server:eth1", port=1)) == Endpoint(node="s1", port=2)
    assert LAB.peer(Endpoint(node="server:eth2", port=1)) == Endpoint(node="s2", port=2)
    assert [host.device for host in LAB.hosts.values()] == [
        *("H1-eth0", "H3-eth0"),
        *("server-eth1", "server-eth2"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            '"server:eth1", b',
            "server, b",
            "links.1.a: 'server' is no interface; write server:eth1 or server:eth2",
        ),
        (
            '"server:eth1", b',
            '"server:eth9", b',
            "server.yml:26: links.1.a: 'server:eth9' is no interface; write server:eth1 or server:eth2",
        ),
        ('"server:eth2", b', '"server:eth1", b', "links.3.a: 'server:eth1' is used by links.1 already"),
        (
            '  - {a: "server:eth2", b: "s2:2"}\n',
            "",
            "links: server:eth2 cannot be reached from H1; add a link",
        ),
        (
            "0:00:00:04",
            "0:00:00:02",
            "server.yml:22: hosts.server.interfaces.eth2.mac: server:eth1 has the same mac",
        ),
        ("10.0.0.4/24", "10.0.0.1/24", "hosts.server.interfaces.eth2.ip: H1 has the same ip; change one"),
        ("10.0.0.4/24", "10.0.0.4", "hosts.server.interfaces.eth2.ip: '10.0.0.4' lacks its prefix length"),
        ("      eth2:", "      eth1:", "key 'eth1' is there twice; remove one"),
        (
            "      eth2:",
            "      eth-2:",
            "'eth-2' is not an interface's name of letters and digits such as eth1",
        ),
        (
            "    interfaces:",
            "    interfaces: {}\n    x:",
            "hosts.server: unknown key 'x' (allowed: interfaces)",
        ),
        ("    interfaces:", "    ip: 10.0.0.9/24\n    interfaces:", "unknown key 'ip' (allowed: interfaces)"),
        ("    interfaces:", "    interface:", "unknown key 'interface' (allowed: mac, ip, speed)"),
        (
            "  H1: ",
            '  "H1:eth0": ',
            "hosts.H1:eth0: the name has a colon; give the host `interfaces` instead",
        ),
        (
            "  s1:\n",
            '  "server:eth1": {datapath_id: "00:00:00:00:00:00:00:09", profile: zodiac-fx}\n  s1:\n',
            "switches.server:eth1: the name has a colon, which comes before a port; take it out",
        ),
        ("10.0.0.4/24", "10.0.0.0/24", "eth2.ip: '10.0.0.0/24' is the first or last address of its network"),
        ("10.0.0.4/24", "10.0.0.255/24", "eth2.ip: '10.0.0.255/24' is the first or last address of its"),
        ("10.0.0.4/24", "127.0.0.1/8", "eth2.ip: '127.0.0.1/8' is no address that a host may have, such as"),
        ("10.0.0.4/24", "224.0.0.1/4", "eth2.ip: '224.0.0.1/4' is no address that a host may have, such as"),
        (
            "02:00:00:00:00:04",
            "00:00:00:00:00:00",
            "eth2.mac: '00:00:00:00:00:00' is not a unicast MAC address such as",
        ),
        (
            "  H1: {mac:",
            "  H1: {mca:",
            "hosts.H1: unknown key 'mca' (allowed: mac, ip, speed); did you mean 'mac'?",
        ),
        ("  H1: {", "  H1: 7 # {", "hosts.H1: must be keys with values"),
    ],
)
def test_mistake_is_one_line_that_says_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in SOURCE
    path = tmp_path / "server.yml"
    path.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_lab(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_single_named_interface_is_named_too(tmp_path: Path) -> None:
    lines = [line for line in SOURCE.splitlines() if "eth2" not in line]
    (tmp_path / "lab.yml").write_text("\n".join(lines))
    lab = load_lab(tmp_path)
    assert list(lab.hosts) == ["H1", "H3", "server:eth1"]
    assert lab.which_interface("server") == "say which interface of 'server': server:eth1"


def test_the_path_begins_and_ends_at_the_port_of_the_interface() -> None:
    def crossed(source: str, destination: str) -> list[tuple[str, int]]:
        return [(hop.switch, hop.output_port) for hop in shortest_path(LAB, source, destination)]

    assert crossed("server:eth1", "H1") == [("s1", 1)]
    assert crossed("server:eth2", "H1") == [("s2", 3), ("s1", 1)]
    assert crossed("H1", "server:eth2") == [("s1", 3), ("s2", 2)]
    assert crossed("server:eth1", "server:eth2") == [("s1", 3), ("s2", 2)]


def flow(number: int, source: str, destination: str, rate_bps: float = 244_800) -> Flow:
    return flow_of(
        number, source, destination, rate_bps=rate_bps, burst_bytes=2 * FRAME_BYTES, frame_bytes=FRAME_BYTES
    )


@pytest.mark.parametrize("scheme", ["loko", "packets"])
def test_a_switch_is_used_by_the_flows_of_its_own_interface_only(scheme: str) -> None:
    """The first switch has room for only so many flows from eth1. As many flows from eth2 do not use it."""
    first = [flow(number, "server:eth1", "H1") for number in range(200)]
    second = [flow(200 + number, "server:eth2", "H3") for number in range(200)]
    alone = [len(plan(LAB, flows, scheme=scheme).accepted) for flows in (first, second)]
    assert 0 < alone[0] == alone[1] < 200
    assert len(plan(LAB, [*first, *second], scheme=scheme).accepted) == sum(alone)


HEADER = "id,source,destination,udp_source,udp_destination,rate,burst,frame"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("server", "say which interface of 'server': server:eth1 or server:eth2"),
        ("server:", "say which interface of 'server': server:eth1 or server:eth2"),
        ("server:eth3", "'server' has no interface 'eth3': write server:eth1 or server:eth2"),
        ("Server", "has no host 'Server'; did you mean 'server:eth1' or 'server:eth2'?"),
        ("SERVER:eth2", "has no host 'SERVER:eth2'; did you mean 'server:eth2'?"),
        ("h3", "has no host 'h3'; did you mean 'H3'?"),
        ("s1:2", "has no host 's1:2'; it has H1, H3, server:eth1, server:eth2"),
    ],
)
def test_who_does_not_name_an_interface_is_told_which_there_are(
    tmp_path: Path, source: str, says: str
) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text(f"{HEADER}\na,{source},H1,1,2,1 kbit/s,1 frame,306 bytes\n")
    answer = CliRunner().invoke(app, ["plan", str(FILE), str(flows)])
    assert answer.exit_code == 2
    told = " ".join(answer.output.split())
    assert "flows.csv:2: flow 'a': source: " in told
    assert told.endswith(says)


def test_a_path_from_no_interface_is_refused() -> None:
    with pytest.raises(InputError) as error:
        shortest_path(LAB, "H1", "server")
    question = "say which interface of 'server': server:eth1 or server:eth2"
    assert str(error.value) == f"lab 'two-switch-server': {question}"


def sent(*senders: Sender, seconds: float = 0.1) -> RunRecords:
    routed = [
        RoutedFlow(
            flow(sender.flow, sender.source, sender.destination),
            shortest_path(LAB, sender.source, sender.destination),
        )
        for sender in senders
    ]
    with VirtualRunner(LAB, routed, entries=17) as runner:
        return runner.run(senders, seconds=seconds, seed=1)


def at_once(number: int, source: str, destination: str) -> Sender:
    return Sender.of(
        number, flow(number, source, destination), Releases(instants_ns=np.zeros(3, dtype=np.int64))
    )


def test_each_interface_has_a_line_of_its_own() -> None:
    both = sent(at_once(0, "server:eth1", "H1"), at_once(1, "server:eth2", "H3"))
    assert [both.sent_ns[both.flow == number].tolist() for number in (0, 1)] == 2 * [
        [0, SLOT_NS, 2 * SLOT_NS]
    ]
    records = sent(at_once(0, "server:eth1", "H1"), at_once(1, "server:eth1", "H3"))
    assert sorted(records.sent_ns.tolist()) == [number * SLOT_NS for number in range(6)]


def test_a_flow_takes_the_switch_of_its_interface_and_arrives_at_the_one_it_names() -> None:
    near = sent(at_once(0, "server:eth1", "H1"))
    assert (near.boards["s1"]["forwarded"], near.boards["s2"]["received"]) == (3, 0)
    far = sent(
        at_once(0, "server:eth2", "H1"),
        at_once(1, "H1", "server:eth2"),
        at_once(2, "server:eth1", "server:eth2"),
    )
    assert (far.received_ns != LOST).all()
    assert (far.boards["s1"]["forwarded"], far.boards["s2"]["forwarded"]) == (9, 9)


def test_a_replay_keeps_every_guarantee_over_both_interfaces(tmp_path: Path) -> None:
    flows = [
        {"id": f"{source}-{destination}", "source": source, "destination": destination}
        | {"udp_source": 5000 + number, "udp_destination": 6000}
        | {"rate": "700 kbit/s", "burst": "2 frames", "frame": "306 bytes"}
        for number, (source, destination) in enumerate(
            [("server:eth1", "H3"), ("server:eth2", "H3"), ("H1", "server:eth2"), ("H1", "server:eth1")]
        )
    ]
    file = tmp_path / "flows.yml"
    file.write_text(yaml.safe_dump(flows))
    answer = CliRunner().invoke(app, ["replay", str(FILE), str(file), "--json"])
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.output)
    assert json.dumps(told).count("server:eth2") >= 2
