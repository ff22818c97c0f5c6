"""Lab files, flow files, paths and tables."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirrored_flows import FLOWS

from loko.control.entries import switch_entries
from loko.document import LABS, InputError
from loko.switch_model.device import deterministic
from loko.switch_model.flow import Flow, FlowDocument, dump_flows
from loko.topology.lab import Backend, Endpoint, Lab, lab_of, load_lab, ring_lab
from loko.topology.network import Hop, on_shortest_paths, shortest_path
from loko.topology.requests import load_flows
from loko.topology.ring import Ring

SOURCE = (LABS / "two-switch" / "lab.yml").read_text()
NETWORKED = SOURCE.replace("control: session", "control: network")
LAB = load_lab("two-switch")


def test_two_switch_lab_is_figure_16() -> None:
    assert LAB.control_port == 4
    assert LAB.switches["s1"].datapath_id == 0x000070B3D56C0001
    assert LAB.switches["s1"].config == {
        "mac": "70:b3:d5:6c:00:01",
        "ip_address": "10.0.1.99",
        "ofchecks": False,
    }
    assert LAB.controller is None
    for host, switch, port in (("H1", "s1", 1), ("H2", "s1", 2), ("H3", "s2", 1), ("H4", "s2", 2)):
        assert LAB.peer(Endpoint(node=host, port=1)) == Endpoint(node=switch, port=port)
    assert LAB.peer(Endpoint(node="s2", port=3)) == Endpoint(node="s1", port=3)
    assert LAB.peer(Endpoint(node="s2", port=4)) is None


def test_lab_by_folder_and_by_file() -> None:
    assert load_lab(LABS / "two-switch").links == load_lab(LABS / "two-switch" / "lab.yml").links == LAB.links


def test_lab_is_frozen() -> None:
    with pytest.raises(TypeError):
        LAB.hosts["H5"] = LAB.hosts["H1"]  # type: ignore[index]


@pytest.mark.parametrize(
    "changed",
    [LAB.as_printed(), LAB.robust(), LAB.slowed(10), LAB.with_buffers(2)],
    ids=["as-printed", "robust", "slowed", "buffers"],
)
def test_switches_that_share_a_profile_share_the_changed_one(changed: Lab) -> None:
    profiles = [lab.switches[name].profile for lab in (LAB, changed) for name in ("s1", "s2")]
    assert profiles[0] is profiles[1]
    assert profiles[2] is profiles[3]
    assert profiles[2] != profiles[0]


def test_larger_buffers_do_not_make_a_lab_robust() -> None:
    larger = LAB.with_buffers(3)
    before, after = (deterministic(lab.switches["s1"].profile).buffer for lab in (LAB, larger))
    assert (after.packets.value, after.units.value) == (3 * before.packets.value, 3 * before.units.value)
    assert not larger.is_robust
    assert LAB.robust().with_buffers(3).is_robust


def test_a_switch_is_an_emulated_board_unless_the_lab_says_otherwise(tmp_path: Path) -> None:
    assert LAB.backends == (Backend.FIRMWARE,)
    path = tmp_path / "lab.yml"
    path.write_text(
        SOURCE.replace("    profile: zodiac-fx\n", "    profile: zodiac-fx\n    backend: ovs\n", 1)
    )
    lab = load_lab(path)
    assert [switch.name for switch in lab.behind(Backend.OVS)] == ["s1"]
    assert [switch.name for switch in lab.behind(Backend.FIRMWARE)] == ["s2"]
    assert lab.backends == (Backend.FIRMWARE, Backend.OVS)


def test_a_backend_for_all_switches_leaves_the_rest_of_the_lab_as_it_is() -> None:
    stand_in = LAB.with_backend(Backend.OVS)
    assert stand_in.backends == (Backend.OVS,)
    assert stand_in.with_backend(Backend.FIRMWARE) == LAB
    assert LAB.with_backend(None) is LAB


def test_cables_run_at_the_rate_of_the_switches() -> None:
    assert {LAB.rate_bps(link) for link in LAB.links} == {100_000_000}


CHIP_LAB = {
    "name": "chips",
    "title": "two chips",
    "switches": {
        name: {"datapath_id": f"00:00:02:00:00:00:00:0{number}", "profile": "ideal-1g"}
        for number, name in enumerate(("s1", "s2"))
    },
    "hosts": {
        "h1": {"mac": "02:00:00:00:00:01", "ip": "10.0.0.1/24", "speed": "100 Mbit/s"},
        "h2": {"mac": "02:00:00:00:00:02", "ip": "10.0.0.2/24"},
    },
    "links": [
        {"a": "h1", "b": "s1:1"},
        {"a": "h2", "b": "s2:1"},
        {"a": "s1:2", "b": "s2:2", "speed": "10 Mbit/s"},
    ],
}


def test_a_cable_runs_at_the_lower_speed_of_its_ends_or_less_if_the_lab_says_so() -> None:
    lab = lab_of(CHIP_LAB)
    assert [lab.rate_bps(link) for link in lab.links] == [100_000_000, 1_000_000_000, 10_000_000]
    assert lab.port_rate_bps("h1", 1) == lab.port_rate_bps("s1", 1) == 100_000_000
    assert lab.port_rate_bps("s2", 2) == 10_000_000
    assert lab.slowest_rate_bps("s1") == lab.slowest_rate_bps("s2") == 10_000_000


def test_a_board_and_a_chip_negotiate_the_board_s_speed() -> None:
    switches = {
        **CHIP_LAB["switches"],
        "s2": {"datapath_id": "00:00:70:b3:d5:6c:00:01", "profile": "zodiac-fx"},
    }
    links = [{"a": link["a"], "b": link["b"]} for link in CHIP_LAB["links"]]
    lab = lab_of({**CHIP_LAB, "switches": switches, "links": links})
    assert [lab.rate_bps(link) for link in lab.links] == [100_000_000] * 3


def test_no_cable_is_faster_than_its_ports(tmp_path: Path) -> None:
    links = [*CHIP_LAB["links"][:2], {**CHIP_LAB["links"][2], "speed": "10 Gbit/s"}]
    path = tmp_path / "lab.yml"
    path.write_text(json.dumps({**CHIP_LAB, "links": links}))
    with pytest.raises(InputError, match=r"links\.2\.speed: its ports run at 1 Gbit/s at most; write that"):
        load_lab(path)


def test_a_device_that_is_known_at_one_speed_runs_at_no_other(tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    head, last = SOURCE.split("  s2:")
    last = last.replace("profile: zodiac-fx", "profile: banana-pi-r1").replace(", ip_address: 10.0.1.100", "")
    path.write_text(f"{head}  s2:{last.replace(', ofchecks: false', '')}")
    with pytest.raises(InputError) as error:
        load_lab(path)
    assert str(error.value) == (
        f"{path}:27: links.4: its ports negotiate 100 Mbit/s, but banana-pi-r1 is known at 1 Gbit/s only;"
        " use a faster port"
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "profile: zodiac-fx",
            "backend: bmv2\n    profile: zodiac-fx",
            "lab.yml:9: switches.s1.backend: must be 'firmware', 'ovs', 'ovs-timed', 'mininet-link' or"
            " 'hardware'",
        ),
        ("hosts:", "hots:", "lab.yml:16: unknown key 'hots' (allowed: name, title, ring, switches, hosts,"),
        ("hosts:", "hots:", "did you mean 'hosts'?"),
        ("control_port: 4", "control_port: 4\nfillers: 10", "did you mean 'padding'?"),
        ("{a: H4, b:", "{a: H4, c:", "lab.yml:26: links.3: unknown key 'c' (allowed: a, b, one_way, speed)"),
        ("a: H1", "a: H9", "links.0.a: unknown host or switch 'H9' (known: H1, H2, H3, H4, s1, s2)"),
        ('"s1:2"', '"s1:1"', "lab.yml:24: links.1.b: 's1:1' is used by links.0 already"),
        ('"s1:2"', '"s1:5"', "links.1.b: 's1:5' names no port; write s1:1 to s1:4"),
        ('"s1:2"', "s1", "links.1.b: 's1' names no port"),
        ('"s1:2"', '"s1:4"', "links.1.b: port 4 is the control port"),
        ("a: H1", 'a: "H1:1"', "links.0.a: a host has one interface; write 'H1'"),
        ("a: H2", "a: H1", "links.1.a: 'H1' is used by links.0 already"),
        ("00:00:00:02", "00:00:00:01", "hosts.H2.mac: H1 has the same mac; change one"),
        ("10.0.0.2/24", "10.0.0.1/24", "hosts.H2.ip: H1 has the same ip; change one"),
        ("10.0.0.2/24", "10.0.0.2", "lab.yml:18: hosts.H2.ip: '10.0.0.2' lacks its prefix length"),
        ("10.0.0.2/24", "10.0.0.256/24", "is not an IPv4 address with prefix"),
        ('"02:00:00:00:00:02"', '"03:00:00:00:00:02"', "is not a unicast MAC address"),
        ('  - {a: H4, b: "s2:2"}\n', "", "links: H4 cannot be reached from H1; add a link"),
        ("profile: zodiac-fx", "profile: zodiac", "switches.s1.profile: profile 'zodiac': no such name"),
        ("control_port: 4", "control_port: 9", "control_port: s1 has ports 1 to 4"),
        ('c:00:01" #', 'c:00:07" #', "board's MAC address makes it 00:00:70:b3:d5:6c:00:01; write that"),
        ('"00:00:70', '"70', "is not eight bytes such as"),
        ("  H1:", "  s1:", "hosts.s1: a switch has this name already"),
        ("title: ", "title: [", "not valid YAML"),
        ("  H2:", "  H1:", "lab.yml:18: key 'H1' is there twice; remove one"),
        ("title: ", "title: 2020-13-01 #", "not valid YAML: month must be in 1..12"),
        ("title: ", "title: " + "[" * 5000, "nested too deeply"),
    ],
)
def test_mistake_is_one_line_that_says_where(tmp_path: Path, old, new, says) -> None:
    assert old in SOURCE
    path = tmp_path / "lab.yml"
    path.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_lab(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["s.1", "1.5", "7"])
def test_a_mistake_is_found_in_its_line_whatever_the_name_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / "lab.yml"
    source = SOURCE.replace("  s1:", f'  "{name}":').replace('"s1:', f'"{name}:')
    path.write_text(source)
    load_lab(path)
    path.write_text(source.replace('c:00:01" #', 'c:00:07" #', 1))
    with pytest.raises(InputError) as error:
        load_lab(path)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if 'c:00:01" #' in text)
    assert str(error.value).startswith(f"{path}:{line}: switches.{name}.datapath_id: ")


def test_a_board_has_the_mac_address_that_its_datapath_id_states(tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(SOURCE.replace('mac: "70:b3:d5:6c:00:02", ', ""))
    assert load_lab(path).switches["s2"].config["mac"] == "70:b3:d5:6c:00:02"
    path.write_text(path.read_text().replace("00:00:70:b3:d5:6c:00:02", "00:17:70:b3:d5:6c:00:02"))
    with pytest.raises(InputError, match="MAC address after two zero bytes; write 00:00:70:b3:d5:6c:00:02"):
        load_lab(path)


def test_boards_may_connect_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(NETWORKED)
    assert load_lab(path).controller == IPv4Interface("10.0.1.8/24")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("controller: 10.0.1.8/24", "", "controller: control: network needs its address"),
        ("controller: 10.0.1.8/24", "controller: 10.0.1.8", "'10.0.1.8' lacks its prefix length"),
        ("ip_address: 10.0.1.100, ", "", "switches.s2.config: control: network needs the board's ip_address"),
        ("10.0.1.100", "10.0.1.99", "switches.s2.config.ip_address: s1 has 10.0.1.99 already"),
        ("10.0.1.100", "10.0.1.8", "the controller has 10.0.1.8 already"),
        ("10.0.1.100", "10.0.2.100", "10.0.2.100 is not in the controller's network 10.0.1.0/24"),
        ("10.0.1.100", "ten", "'ten' is not an address such as"),
        ("control: network", "control: frames", "control: "),
        ("ofchecks", "native_ports: [], ofchecks", "switches.s1.config: native_ports: control ="),
        ("ofchecks", "gateway: 224.0.0.1, ofchecks", "switches.s1.config: gateway: 224.0.0.1 is no address"),
        (
            "profile: zodiac-fx",
            "profile: ideal-1g",
            "an emulated ideal-1g has no control port; write control:",
        ),
    ],
)
def test_mistake_about_the_control_network_is_one_line(tmp_path: Path, old, new, says) -> None:
    assert old in NETWORKED
    path = tmp_path / "lab.yml"
    path.write_text(NETWORKED.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_lab(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("profile", "settings", "says"),
    [
        ("ideal-1g", {"ofchecks": False}, "config.ofchecks: unknown field `ofchecks`, expected one of `mac`"),
        ("banana-pi-r1", {"quirks": "spec"}, "config.quirks: unknown field `quirks`, expected one of `mac`"),
        ("ideal-1g", {"link_rate_bps": 0}, "config.link_rate_bps: its profile says 1 Gbit/s; give its links"),
        ("ideal-1g", {"link_rate_bps": 10**7}, "config.link_rate_bps: its profile says 1 Gbit/s; give its"),
        ("zodiac-fx", {"ofcheck": False}, "config.ofcheck: unknown field `ofcheck`, expected one of `name`"),
        ("zodiac-fx", {"name": "a name of many letters"}, "config.name: `a name of many letters` has 22"),
        ("zodiac-fx", {"controller_port": 70_000}, "config.controller_port: 70000 is no such setting: "),
        ("zodiac-fx", {"netmask": 24}, "config.netmask: 24 is no such setting: "),
        ("zodiac-fx", {"netmask": "\\x"}, "config.netmask: '\\\\x' is no such setting: invalid IPv4 address"),
        ("zodiac-fx", {"quirks": 3}, "config.quirks: 3 is no such setting: expected either"),
        ("zodiac-fx", {"quirks": {"only": ["x"]}}, "config.quirks: no quirk is called `x`; "),
        (
            "zodiac-fx",
            {"openflow_ports": [1, 2, 3, 4], "native_ports": [], "controller_port": 70_000},
            "config.controller_port: 70000 is no such setting: ",
        ),
        (
            "zodiac-fx",
            {"openflow_ports": [1, 2], "native_ports": [2, 3]},
            "config.native_ports: port 2 is also an OpenFlow port",
        ),
    ],
)
def test_settings_that_no_emulated_device_can_have_are_one_line(profile, settings, says) -> None:
    s1 = CHIP_LAB["switches"]["s1"]
    values = {
        **CHIP_LAB,
        "switches": {**CHIP_LAB["switches"], "s1": {**s1, "profile": profile, "config": settings}},
    }
    with pytest.raises(InputError) as error:
        lab_of(values)
    assert f"chips: switches.s1.{says}" in str(error.value)
    assert "\n" not in str(error.value)


def complaint(path: Path) -> str:
    """Return the error of the lab file, or an empty string."""
    try:
        load_lab(path)
    except InputError as error:
        return str(error)
    return ""


@given(st.binary(max_size=200))
def test_any_bytes_are_a_lab_or_one_line(tmp_path_factory, content) -> None:
    path = tmp_path_factory.mktemp("labs") / "lab.yml"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        load_lab(path)
    assert "\n" not in str(error.value)


@given(st.integers(0, len(SOURCE) - 1), st.characters(codec="ascii"))
def test_any_single_slip_is_a_lab_or_one_line(tmp_path_factory, place, character) -> None:
    path = tmp_path_factory.mktemp("labs") / "lab.yml"
    path.write_text(SOURCE[:place] + character + SOURCE[place + 1 :])
    assert "\n" not in complaint(path)


def test_paths_cross_both_switches() -> None:
    assert shortest_path(LAB, "H1", "H3") == (
        Hop(switch="s1", output_port=3),
        Hop(switch="s2", output_port=1),
    )
    assert shortest_path(LAB, "H4", "H3") == (Hop(switch="s2", output_port=1),)


def test_tables_end_with_the_used_entries_in_increasing_priority() -> None:
    tables = switch_entries(LAB, on_shortest_paths(LAB, FLOWS))
    for switch, ports in (("s1", [3, 1, 3, 2]), ("s2", [1, 3, 2, 3])):
        table = tables[switch]
        assert len(table) == 17
        assert [entry.priority for entry in table] == sorted({entry.priority for entry in table})
        hosts = {host.ip.ip for host in LAB.hosts.values()}
        assert not any({entry.match.nw_src, entry.match.nw_dst} & hosts for entry in table[:13])
        assert [entry.output_port for entry in table[13:]] == ports
        assert table[13].match.nw_src == IPv4Address("10.0.0.1")
        # Zero would be a wildcard on the board.
        assert all(entry.match.tp_src and entry.match.tp_dst and int(entry.match.nw_src) for entry in table)
        assert len({(entry.match.nw_src, entry.match.nw_dst) for entry in table}) == 17


def test_tables_must_hold_their_flows() -> None:
    with pytest.raises(InputError, match="s1: 4 flows pass, 3 entries are planned"):
        switch_entries(LAB, on_shortest_paths(LAB, FLOWS), entries=3)
    with pytest.raises(InputError, match="its table holds 128"):
        switch_entries(LAB, on_shortest_paths(LAB, FLOWS), entries=129)


def test_flows_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "flows.yml"
    path.write_text(str(dump_flows(FLOWS)))
    assert load_flows(path) == FLOWS


def test_a_flow_and_its_document_have_the_same_fields_and_the_five_tuple_is_among_them() -> None:
    assert tuple(FlowDocument.model_fields) == Flow._fields
    assert Flow._fields[1:5] == ("source", "destination", "udp_source", "udp_destination")
    assert FlowDocument(**FLOWS[0]._asdict()).flow == FLOWS[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rate_bps": -1}, "flow 'H1-H3': rate_bps: must be more than 0, not -1"),
        ({"udp_source": 70000}, "flow 'H1-H3': udp_source: must be at most 65535, not 70000"),
        ({"rat": 1}, "flow 'H1-H3': unknown key 'rat'"),
        ({"burst_bytes": 100}, "a burst of 100 bytes is below a frame of 306"),
        ({"source": "H3", "destination": "H1"}, "has the hosts and ports of 'H1-H3'; change a port"),
        ({"id": "H3-H1"}, "flow 'H3-H1': this id is used twice"),
    ],
)
def test_wrong_flow_is_one_line(tmp_path: Path, change, says) -> None:
    path = tmp_path / "flows.yml"
    values = dump_flows(FLOWS)
    path.write_text(str([{**values[0], **change}, *values[1:]]))
    with pytest.raises(InputError) as error:
        load_flows(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rate", ["1e6", "1E+6", "1.0e+6", "1000000", "10000000e-1"])
def test_a_rate_may_be_written_as_in_json(tmp_path: Path, rate) -> None:
    path = tmp_path / "flows.json"
    path.write_text(json.dumps(dump_flows(FLOWS)).replace("1000000.0", rate))
    assert load_flows(path) == FLOWS


def test_flows_that_are_no_list(tmp_path: Path) -> None:
    path = tmp_path / "flows.yml"
    path.write_text("flows: 3")
    with pytest.raises(InputError, match="is no list of flows"):
        load_flows(path)


def test_a_ring_is_written_out_and_goes_round_one_way() -> None:
    lab = load_lab("ring")
    assert (len(lab.switches), len(lab.hosts), len(lab.links)) == (31, 62, 93)
    assert len(shortest_path(lab, "h1a", "h1b")) == 1
    assert [hop.switch for hop in shortest_path(lab, "h30a", "h2b")] == ["s30", "s31", "s1", "s2"]
    assert len(shortest_path(lab, "h2a", "h1a")) == 31


def test_a_ring_of_any_size_with_a_host_each() -> None:
    lab = ring_lab(Ring(switches=3, one_way=False))
    assert lab.control_port == 4
    assert len(shortest_path(lab, "h1", "h3")) == 2


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_largest_ring_has_an_address_for_everybody(hosts: int) -> None:
    lab = ring_lab(Ring(switches=4000, hosts_per_switch=hosts, one_way=False))
    assert (len(lab.switches), len(lab.hosts)) == (4000, 4000 * hosts)  # the lab refuses duplicates
    assert all(f"{switch.datapath_id:012x}".startswith("70b3d56c0") for switch in lab.switches.values())
    assert len({host.ip.network for host in lab.hosts.values()}) == 1
    small = ring_lab(Ring(switches=250, hosts_per_switch=hosts, one_way=False))
    assert all(lab.hosts[name] == host for name, host in small.hosts.items())
    assert {name: lab.switches[name].datapath_id for name in small.switches} == {
        name: switch.datapath_id for name, switch in small.switches.items()
    }
    if hosts == 1:
        assert len({switch.config["ip_address"] for switch in lab.switches.values()}) == 4000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ring: {switches: 2}", "ring"),
        ("ring: {switches: 4001}", "4001 boards, but a ring has MAC addresses for 4000"),
        ("ring: {switches: 3, hosts_per_switch: 3}", "ring"),
        ("ring: {switches: 3}\ncontrol_port: 4", "leave one of them out"),
        ("ring: {switches: 3, hosts_per_switch: 2}\ncontrol: network", "needs a control_port"),
    ],
)
def test_a_wrong_ring_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(f"name: r\ntitle: R\n{text}\n")
    with pytest.raises(InputError, match=says) as error:
        load_lab(path)
    assert "\n" not in str(error.value)
