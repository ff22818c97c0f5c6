"""The role `board`: settings read from a console and planned, checked against the emulated console."""

from __future__ import annotations

import pytest
from board_role import role_module
from gate_examples import examples
from hypothesis import given
from hypothesis import strategies as st
from switch_emulator import Board

role_module()

from ansible.module_utils.zodiac_settings import (  # noqa: E402  # the role's helpers are found from here on
    PORTS,
    SETTINGS,
    UnexpectedTextError,
    Vlan,
    changes_to,
    firmware_version,
    parse_config,
    parse_ports,
    parse_vlans,
)

LONGEST_ANSWER_NS = 5_000_000_000


class Desk:
    """The console of an emulated board in virtual time."""

    def __init__(self) -> None:
        self.board = Board()
        self.now_ns = 0
        self.ask("")

    def ask(self, command: str) -> list[str]:
        self.board.console(self.now_ns, command.encode() + b"\r")
        self.now_ns += LONGEST_ANSWER_NS
        self.board.advance(self.now_ns)
        outputs = self.board.outputs()
        text = b"".join(output.data for output in outputs if output.kind == "console").decode()
        return text.split("\r\n")[1:-1]

    def read(self) -> tuple[dict[str, str], list[Vlan]]:
        ports = parse_ports(self.ask("show ports"))
        self.ask("config")
        config, vlans = parse_config(self.ask("show config")), parse_vlans(self.ask("show vlans"), ports)
        self.ask("exit")
        return config, vlans

    def carry_out(self, commands) -> None:
        for command in commands:
            self.ask(command.context)
            answer = self.ask(command.text)
            assert not any("nknown" in line or "nvalid" in line or "no more" in line for line in answer), (
                command,
                answer,
            )
            self.ask("exit")


addresses = st.ip_addresses(v=4).map(str)
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=15)
words = {
    "name": names,
    "mac_address": st.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":")),
    "ip_address": addresses,
    "netmask": addresses,
    "gateway": addresses,
    "controller_address": addresses,
    "controller_port": st.integers(1, 65535).map(str),
    "openflow": st.sampled_from(["enabled", "disabled"]),
    "fail_state": st.sampled_from(["secure", "safe"]),
    "openflow_version": st.sampled_from(["0", "1", "4"]),
    "ethertype_filter": st.sampled_from(["enabled", "disabled"]),
}
configs = st.fixed_dictionaries({}, optional=words)


@st.composite
def vlan_lists(draw) -> list[Vlan]:
    """Up to four VLANs with few IDs and names, so that some are the same in consecutive lists."""
    ids = draw(st.lists(st.sampled_from([100, 200, 300, 4094]), unique=True, max_size=4))
    homes = {port: draw(st.sampled_from([0, *ids])) for port in PORTS}
    return [
        Vlan(
            number,
            draw(st.sampled_from(["Openflow", "Controller", "it's"])),
            draw(st.sampled_from(["openflow", "native"])),
            draw(st.booleans()),
            frozenset(port for port, home in homes.items() if home == number),
        )
        for number in ids
    ]


@examples(40)
@given(st.lists(st.tuples(configs, st.none() | vlan_lists()), min_size=1, max_size=3))
def test_a_plan_leads_to_what_is_wished_and_then_nothing_is_left(wishes) -> None:
    desk = Desk()
    for config, vlans in wishes:
        desk.carry_out(changes_to(*desk.read(), config, vlans).commands)
        shown, present = desk.read()
        assert changes_to(shown, present, config, vlans).commands == ()
        for setting in SETTINGS:
            if setting.key in config:
                assert shown[setting.key].lower() == setting.shown(config[setting.key]).lower()
        if vlans is not None:
            assert sorted(present, key=lambda vlan: vlan.id) == sorted(vlans, key=lambda vlan: vlan.id)


def test_only_some_changes_need_a_restart() -> None:
    config, vlans = Desk().read()
    for key, value, needed in [
        ("fail_state", "safe", False),
        ("openflow", "disabled", False),
        ("ip_address", "10.0.0.1", True),
    ]:
        changes = changes_to(config, vlans, {key: value}, None)
        assert (len(changes.commands), changes.needs_restart) == (1, needed)
    assert changes_to(config, vlans, {}, []).needs_restart
    assert changes_to(config, vlans, {}, vlans).commands == ()


def test_other_labels_of_the_same_meaning_are_understood() -> None:
    lines = [
        "Configuration",
        "  Name : s1",
        "  MAC: 02:00:00:00:00:01",
        "  IP: 10.0.0.1",
        "  Netmask: 255.0.0.0",
        "  Gateway: 10.0.0.2",
        "  Controller IP: 10.0.0.3",
        "  Controller port: 6633",
        "  Openflow Status: Enabled",
        "  Fail state: Safe",
        "  Forced OpenFlow version: 1.0",
        "  Ethertype filtering: Disabled",
    ]
    with pytest.raises(UnexpectedTextError, match="controller_port"):
        parse_config([line for line in lines if "6633" not in line])
    values = parse_config(lines)
    assert values["mac_address"] == "02:00:00:00:00:01"
    assert values["controller_address"] == "10.0.0.3"
    assert values["controller_port"] == "6633"


def test_texts_that_are_no_answers_are_named() -> None:
    assert firmware_version(["Firmware version: 0.84"]) == "0.84"
    for read in (firmware_version, parse_config, parse_ports):
        with pytest.raises(UnexpectedTextError, match="show"):
            read(["login: "])
    assert parse_vlans(["VLAN ID Name Type Tag", "----"], {}) == []
