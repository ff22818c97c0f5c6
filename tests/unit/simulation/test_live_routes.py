"""How live labs tell the interfaces of a host apart, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Interface

import pytest

from loko.topology.lab import load_lab
from loko_testbed.live.interfaces import device_of
from loko_testbed.live.routes import commands, port_rule
from loko_testbed.live.transmission import refuse, sinks
from loko_testbed.simulation.runner import RunError
from loko_testbed.simulation.traffic import Bucket, Greedy, Sender, Sends, TimeTriggered, flow_of

LAB = load_lab("two-switch/server.yml")


def test_in_live_labs_what_has_the_address_of_an_interface_leaves_by_it() -> None:
    interfaces = LAB.machines["server"]
    assert commands(LAB, "server", [host.device for host in interfaces]) == [
        "rule add pref 100 lookup local",
        "rule delete pref 0",
        "route add 10.0.0.0/24 dev server-eth1 src 10.0.0.2 table 101",
        "rule add pref 20 iif lo from 10.0.0.2 lookup 101",
        "route add 10.0.0.0/24 dev server-eth2 src 10.0.0.4 table 102",
        "rule add pref 20 iif lo from 10.0.0.4 lookup 102",
    ]
    assert commands(LAB, "H1", ["H1-eth0"]) == []
    rule = port_rule(LAB, "server:eth2", 5001)
    assert rule is not None
    assert " ".join(rule) == "pref 10 iif lo ipproto udp sport 5001 lookup 102"
    assert port_rule(LAB, "H1", 5001) is None


def test_in_live_labs_every_interface_reaches_the_other_networks_of_the_lab() -> None:
    far = replace(LAB.hosts["server:eth2"], ip=IPv4Interface("192.168.7.4/24"))
    lab = replace(LAB, hosts=LAB.hosts | {far.name: far})
    assert commands(lab, "H1", ["H1-eth0"]) == ["route add 192.168.7.0/24 dev H1-eth0 src 10.0.0.1"]
    assert commands(lab, "server", ["server-eth1", "server-eth2"]) == [
        "rule add pref 100 lookup local",
        "rule delete pref 0",
        "route add 10.0.0.0/24 dev server-eth1 src 10.0.0.2 table 101",
        "route add 192.168.7.0/24 dev server-eth1 src 10.0.0.2 table 101",
        "rule add pref 20 iif lo from 10.0.0.2 lookup 101",
        "route add 10.0.0.0/24 dev server-eth2 src 192.168.7.4 table 102",
        "route add 192.168.7.0/24 dev server-eth2 src 192.168.7.4 table 102",
        "rule add pref 20 iif lo from 192.168.7.4 lookup 102",
    ]


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ("sixteenletters", "the interface name 'sixteenletters-eth1' has more than 15 characters: shorten"),
        ("sërvërsëë", "the interface name 'sërvërsëë-eth1' has more than 15 bytes: shorten the name of"),
        ("my server", "Linux takes no interface name 'my server-eth1': take spaces, slashes and a leading"),
        ("a/b", "Linux takes no interface name 'a/b-eth1'"),
        ("-s", "Linux takes no interface name '-s-eth1'"),
    ],
)
def test_names_that_linux_would_not_take_are_refused(machine: str, says: str) -> None:
    with pytest.raises(RunError) as error:
        device_of(replace(LAB.hosts["server:eth1"], name=f"{machine}:eth1"), LAB)
    assert says in str(error.value)


def test_live_labs_refuse_what_their_hosts_cannot_tell_apart() -> None:
    greedy = Greedy(bucket=Bucket(rate_bps=244_800, burst_bytes=612))
    flows = [
        flow_of(number, f"server:eth{number + 1}", "H1", rate_bps=244_800, burst_bytes=612, frame_bytes=306)
        for number in (0, 1)
    ]
    first, second = (Sender.of(number, flow, greedy) for number, flow in enumerate(flows))
    refuse([first, second], LAB)
    with pytest.raises(
        RunError, match=r"flows 0 and 1 both leave server by UDP port 5000: .* give each a port of its own"
    ):
        refuse([first, replace(second, udp_source=first.udp_source)], LAB)
    with pytest.raises(
        RunError, match=r"flow 0: .*server.yml: say which interface of 'server': server:eth1 or"
    ):
        refuse([replace(first, destination="server")], LAB)


def test_what_arrives_where_a_generator_of_the_same_host_sends_from_needs_no_sink() -> None:
    """With a sink, mgen would find its port taken and send from another, for which there is no entry."""
    greedy = Greedy(bucket=Bucket(rate_bps=244_800, burst_bytes=612))
    slots = TimeTriggered(offset_ns=0, period_ns=10_000_000)

    def sender(number: int, source: str, destination: str, ports: tuple[int, int], sends: Sends) -> Sender:
        flow = flow_of(number, source, destination, rate_bps=244_800, burst_bytes=612, frame_bytes=306)
        return Sender.of(number, flow._replace(udp_source=ports[0], udp_destination=ports[1]), sends)

    itself = sender(0, "server:eth1", "server:eth2", (5000, 5000), greedy)
    there = sender(1, "H1", "server:eth1", (5001, 5000), greedy)
    back = sender(2, "H3", "H1", (5002, 5001), greedy)
    assert sinks([itself, there, back], LAB) == []
    assert sinks([itself, there, back, sender(3, "H1", "H3", (5003, 5002), slots)], LAB) == []
    assert sinks(
        [sender(0, "H1", "H3", (5000, 6000), slots), sender(1, "H3", "H1", (6001, 5000), slots)], LAB
    ) == [
        ("H1", 5000),
        ("H3", 6000),
    ]
