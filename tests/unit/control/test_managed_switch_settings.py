"""Settings and commands of switches without OpenFlow, read as the standard and the manuals say they work."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from harness.managed_switches import OWN_BUFFERS, managed_switch, ring_of_managed

from loko.admission import Admitted, Refusal
from loko.admission.mixed import MixedAdmission
from loko.admission.planning import Plan, plan
from loko.admission.port_queues import PortAdmission
from loko.admission.port_queues.vlans import FlowVlans
from loko.control.managed_switches import (
    NetworkSettings,
    SwitchSettings,
    fastpath_commands,
    in_words,
    linux_commands,
    network_settings,
)
from loko.document import PROFILES, InputError
from loko.switch_model.control_traffic import NO_MESSAGES
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import UNKNOWN, loko_scenario
from loko.topology.lab import Lab, load_lab
from loko.topology.network import Hop

SCENARIO = loko_scenario(entries=UNKNOWN, packet_sizes_bytes=(306,))
Forward = Callable[[str, int, int, str], set[int]]
"""Returns the ports by which a switch sends a frame that came by a port, in a VLAN, to an address."""


def planned(folder: Path, *, seed: int = 1, vlans: int = 64, flows: int = 24) -> Plan:
    """Plan flows in three classes on a ring of five switches, on either way round."""
    lab = ring_of_managed(
        folder, managed_switch(OWN_BUFFERS, queues=4, vlans=vlans), switches=5, hosts_each=2
    )
    rng = Random(seed)
    hosts = list(lab.hosts)
    requested, paths = [], {}
    for number in range(flows):
        source, destination = rng.sample(hosts, 2)
        ports, traffic_class = (5000 + number, 6000), 1 + number % 3
        requested.append(Flow(f"f{number}", source, destination, *ports, 1e6, 306.0, 306, traffic_class))
        paths[f"f{number}"] = round_the_ring(lab, source, destination, rng.choice((1, 2)))
    return plan(lab, requested, PortAdmission(lab, SCENARIO, classes=3), paths)


def round_the_ring(lab: Lab, source: str, destination: str, port: int) -> tuple[Hop, ...]:
    """Return the path that leaves every switch by the port to the next one (1), or to the one before (2)."""
    end = lab.far_end(source, 1)
    last = lab.far_end(destination, 1)
    assert end is not None
    assert last is not None
    hops = []
    while end.node != last.node:
        hops.append(Hop(switch=end.node, output_port=port))
        end = lab.far_end(end.node, port)
        assert end is not None
    return (*hops, Hop(switch=last.node, output_port=last.port))


def reached(lab: Lab, source: str, vlan: int, address: str, forward: Forward) -> tuple[set[str], int]:
    """Return the hosts to which a frame comes that a host sends, and how many cables it takes."""
    first = lab.far_end(source, 1)
    assert first is not None
    waiting, hosts, cables = [first], set(), 1
    while waiting:
        end = waiting.pop()
        for port in forward(end.node, end.port, vlan, address):
            far = lab.far_end(end.node, port)
            assert far is not None
            cables += 1
            assert cables < 100, "the frame goes round in circles"
            if far.node in lab.hosts:
                hosts.add(far.node)
            else:
                waiting.append(far)
    return hosts, cables


def by_settings(settings: NetworkSettings) -> Forward:
    vlans = {(one.name, vlan.vlan): vlan for one in settings.switches for vlan in one.vlans}

    def forward(switch: str, port: int, vlan: int, address: str) -> set[int]:
        found = vlans[switch, vlan]
        assert port in found.inputs
        assert address in {host.mac for host in found.destinations}
        return {found.output}

    return forward


def by_fastpath(settings: NetworkSettings) -> Forward:
    """Without ingress filter, a frame to an unknown address leaves by all members but the one it came by."""
    members: dict[tuple[str, int], set[int]] = defaultdict(set)
    for switch in settings.switches:
        port = 0
        for command in fastpath_commands(switch).splitlines():
            if match := re.fullmatch(r"interface 0/(\d+)", command):
                port = int(match[1])
            elif match := re.fullmatch(r"vlan participation include (\d+)", command):
                members[switch.name, int(match[1])].add(port)
    return lambda switch, port, vlan, _address: members[switch, vlan] - {port}


def by_linux(settings: NetworkSettings) -> Forward:
    """A bridge drops what comes by a port that is no member, and sends to the port of a static entry."""
    members: dict[tuple[str, int], set[int]] = defaultdict(set)
    entries: dict[tuple[str, int, str], int] = {}
    for switch in settings.switches:
        for command in linux_commands(switch).splitlines():
            if match := re.fullmatch(r"bridge vlan add dev swp(\d+) vid (\d+)(?: untagged)?", command):
                members[switch.name, int(match[2])].add(int(match[1]))
            elif match := re.fullmatch(
                r"bridge fdb add (\S+) dev swp(\d+) master static vlan (\d+)", command
            ):
                entries[switch.name, int(match[3]), match[1]] = int(match[2])

    def forward(switch: str, port: int, vlan: int, address: str) -> set[int]:
        assert port in members[switch, vlan]
        known = entries.get((switch, vlan, address))
        return members[switch, vlan] - {port} if known is None else {known}

    return forward


@pytest.mark.parametrize("read", [by_settings, by_fastpath, by_linux])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_flow_takes_its_path_and_no_other(
    tmp_path: Path, seed: int, read: Callable[[NetworkSettings], Forward]
) -> None:
    made = planned(tmp_path, seed=seed)
    assert len(made.accepted) == 24
    settings = network_settings(made)
    forward = read(settings)
    for admitted, marking in zip(made.accepted, settings.flows, strict=True):
        hosts, cables = reached(made.lab, marking.source.name, marking.vlan, marking.destination.mac, forward)
        assert hosts == {admitted.flow.destination}
        assert cables == len(admitted.path) + 1


def test_broadcasts_in_a_vlan_of_flows_end(tmp_path: Path) -> None:
    """The members of each VLAN form no loop, so a frame to an unknown address comes to an end."""
    made = planned(tmp_path)
    settings = network_settings(made)
    forward = by_linux(settings)
    for marking in settings.flows:
        reached(made.lab, marking.source.name, marking.vlan, "ff:ff:ff:ff:ff:ff", forward)


def test_other_traffic_reaches_everybody_once(tmp_path: Path) -> None:
    made = planned(tmp_path)
    settings = network_settings(made)
    ports = {switch.name: set(switch.ports) - set(switch.without_others) for switch in settings.switches}

    def flood(switch: str, port: int, _vlan: int, _address: str) -> set[int]:
        return ports[switch] - {port}

    hosts, cables = reached(made.lab, "h0", 1, "ff:ff:ff:ff:ff:ff", flood)
    assert hosts == set(made.lab.hosts) - {"h0"}
    assert cables == len(made.lab.hosts) + len(made.lab.switches) - 1


def test_priorities_lead_to_the_queue_of_the_class(tmp_path: Path) -> None:
    made = planned(tmp_path)
    settings = network_settings(made)
    for admitted, marking in zip(made.accepted, settings.flows, strict=True):
        assert marking.pcp == 8 - admitted.flow.traffic_class
        assert marking.dscp == 8 * marking.pcp
        for switch in settings.switches:
            assert switch.queues[marking.pcp] == 4 - admitted.flow.traffic_class
            assert f"classofservice dot1p-mapping {marking.pcp} {4 - admitted.flow.traffic_class}\n" in (
                fastpath_commands(switch)
            )
            assert f"ip-dscp-mapping {marking.dscp} {4 - admitted.flow.traffic_class}\n" in (
                fastpath_commands(switch, by_dscp=True)
            )
            bands = linux_bands(switch)
            assert bands[marking.pcp] == admitted.flow.traffic_class - 1
            assert bands[0] == 3, "other traffic is below all classes"


def linux_bands(switch: SwitchSettings) -> list[int]:
    (priomap,) = set(re.findall(r"priomap ([\d ]+)", linux_commands(switch)))
    return [int(band) for band in priomap.split()]


MAC = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
QUEUES = r"[0-7](?: [0-7])*"
FASTPATH = {
    "exec": ["vlan database", "configure"],
    "vlan database": [r"vlan \d+", "exit"],
    "configure": [
        "no spanning-tree",
        r"classofservice dot1p-mapping [0-7] [0-7]",
        r"classofservice ip-dscp-mapping (?:\d|[1-5]\d|6[0-3]) [0-7]",
        r"classofservice trust (?:dot1p|ip-dscp)",
        f"cos-queue strict {QUEUES}",
        r"interface \d+/\d+",
        "exit",
    ],
    "interface": [
        "no vlan ingressfilter",
        r"vlan participation (?:include|exclude) \d+",
        r"(?:no )?vlan tagging \d+",
        "exit",
    ],
}
"""By mode, its commands as the manuals write them."""
LINUX = [
    r"ip link add name \w+ type bridge vlan_filtering [01] stp_state [01]",
    r"ip link set dev \w+ (?:master \w+|up)",
    r"bridge vlan (?:add|del) dev \w+ vid \d+(?: untagged)?",
    rf"bridge fdb add {MAC} dev \w+ master static vlan \d+",
    r"tc qdisc add dev \w+ clsact",
    r"tc filter add dev \w+ ingress protocol 802\.1q flower vlan_prio [0-7] action skbedit priority [0-7]",
    r"tc filter add dev \w+ ingress protocol 802\.1q flower vlan_ethtype ipv4 ip_tos 0x[0-9a-f]{2}/0xfc"
    r" action skbedit priority [0-7]",
    r"tc qdisc replace dev \w+ root handle 1: prio bands (?:[2-9]|1[0-6]) priomap \d+(?: \d+){15}",
]


@pytest.mark.parametrize("by_dscp", [False, True])
def test_commands_keep_to_the_grammar_of_the_manuals(tmp_path: Path, *, by_dscp: bool) -> None:
    for switch in network_settings(planned(tmp_path)).switches:
        for mode, command in with_modes(fastpath_commands(switch, by_dscp=by_dscp)):
            assert any(re.fullmatch(form, command) for form in FASTPATH[mode]), (mode, command)
        shebang, stop, *commands = linux_commands(switch, by_dscp=by_dscp).splitlines()
        assert (shebang, stop) == ("#!/bin/sh", "set -e")
        for command in commands:
            assert any(re.fullmatch(form, command) for form in LINUX), command


def with_modes(commands: str) -> Iterator[tuple[str, str]]:
    modes = ["exec"]
    for command in commands.splitlines():
        yield modes[-1], command
        if command == "exit":
            modes.pop()
        elif command in {"vlan database", "configure"}:
            modes.append(command)
        elif command.startswith("interface"):
            modes.append("interface")
    assert modes == ["exec"]


def test_words_name_every_flow_and_vlan(tmp_path: Path) -> None:
    made = planned(tmp_path)
    words = in_words(network_settings(made))
    for admitted in made.accepted:
        pcp = 8 - admitted.flow.traffic_class
        assert f"flow {admitted.flow.id}: VLAN {admitted.vlan}, PCP {pcp} " in words
    assert words.count("VLAN 1: not at port") == 2, "both ends of the cable that closes the ring"


def test_a_switch_with_openflow_is_not_configured(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS))
    made = plan(lab, [Flow("a", "h0", "h1", 5000, 6000, 1e6, 306.0, 306)], PortAdmission(lab, SCENARIO))
    assert made.accepted[0].vlan is None
    with pytest.raises(InputError, match=r"s0: acme-8g: has OpenFlow, .*\[table\] vlans"):
        network_settings(made)


@pytest.mark.parametrize("tags", ["kept", "removed"])
def test_a_board_that_takes_tags_off_before_a_switch_is_refused(tmp_path: Path, tags: str) -> None:
    ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, vlans=8), switches=3)
    board = (PROFILES / "zodiac-fx.toml").read_text().replace('"kept"', f'"{tags}"')
    (tmp_path / "board.toml").write_text(board)
    lines = (tmp_path / "lab.yml").read_text().replace("00:00:02:00:00:00:01:02", "00:00:70:b3:d5:6c:00:02")
    (tmp_path / "lab.yml").write_text(
        re.sub(r"(s1: .*)\./switch\.toml", r"\1./board.toml", lines) + "control_port: 4\n"
    )
    lab = load_lab(str(tmp_path))
    scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,))
    flow = Flow("a", "h0", "h2", 5000, 6000, 1e4, 306.0, 306)
    over_the_board = {"a": round_the_ring(lab, "h0", "h2", 1)}
    made = plan(lab, [flow], MixedAdmission(lab, scenario, traffic=NO_MESSAGES), over_the_board)
    assert made.accepted
    if tags == "kept":
        assert network_settings(made).flows
    else:
        with pytest.raises(InputError, match=r"flow 'a': s1 takes VLAN tags off .* so s2 cannot forward"):
            network_settings(made)


# The choice of VLANs.


def hops(ports: Mapping[str, int]) -> tuple[Hop, ...]:
    return tuple(Hop(switch=switch, output_port=port) for switch, port in ports.items())


def test_flows_share_a_vlan_where_they_leave_by_the_same_ports() -> None:
    vlans = FlowVlans({"s1": 3, "s2": 3})
    hosts, first = ("a", "b"), hops({"s1": 1, "s2": 2})
    for path, vlan in ((first, 2), (hops({"s2": 2}), 2), (hops({"s2": 3}), 3)):
        assert vlans.find(path, hosts) == vlan
        vlans.add(vlan, path, hosts)
    assert vlans.find(hops({"s1": 1, "s2": 4}), hosts) is None
    assert vlans.obstacle(hops({"s1": 1, "s2": 4}), hosts) == "s2"
    assert vlans.find(hops({"s1": 4}), hosts) == 3
    vlans.remove(2, first, hosts)
    assert vlans.used("s1") == 0
    assert vlans.used("s2") == 2
    assert vlans.find(hops({"other": 7}), hosts) is None
    assert vlans.obstacle(hops({"other": 7}), hosts) is None


def test_no_host_sends_and_receives_in_a_vlan_of_a_switch() -> None:
    """Else the switch would learn that the host is where its frames come from, and send others there."""
    vlans, path = FlowVlans({"s1": 4}), hops({"s1": 1})
    vlans.add(2, path, ("a", "b"))
    assert [vlans.find(path, hosts) for hosts in (("a", "c"), ("c", "b"), ("b", "c"), ("c", "a"))] == [
        2,
        2,
        3,
        3,
    ]
    vlans.add(2, path, ("a", "b"))
    vlans.remove(2, path, ("a", "b"))
    assert vlans.find(path, ("b", "c")) == 3, "one of both flows is still there"


def test_a_path_without_a_vlan_is_refused_until_another_is_given_back(tmp_path: Path) -> None:
    lab = ring_of_managed(tmp_path, managed_switch(OWN_BUFFERS, vlans=2))
    admission = PortAdmission(lab, SCENARIO)
    near = Flow("near", "h0", "h1", 5000, 6000, 1e6, 306.0, 306)
    back = Flow("back", "h1", "h0", 5000, 6000, 1e6, 306.0, 306)
    assert isinstance(admission.request(near), Admitted)
    refusal = admission.request(back)
    assert isinstance(refusal, Refusal)
    assert (refusal.quantity, refusal.used, refusal.allowed) == ("VLANs", 1, 1)
    admission.cancel("near")
    assert isinstance(admission.request(back), Admitted)
