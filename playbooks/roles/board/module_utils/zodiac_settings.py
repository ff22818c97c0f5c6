"""Configuration of a Zodiac FX as its console shows it, and the commands that change it. No I/O.

Labels are found by their words and not letter by letter, because only their meaning is documented for the
real firmware 0.84.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

PORTS = (1, 2, 3, 4)
MAX_VLANS = 4


class UnexpectedTextError(Exception):
    """The console printed something that is no answer of the firmware 0.84; says what was sought."""


@dataclass(frozen=True)
class Setting:
    """A value of `show config`: its label, and the command that sets it."""

    key: str
    label: str
    """Pattern of the label, in lower case."""
    command: str
    """Command with a place for the value, in the context `config`."""
    value: str
    """Pattern of the value that is shown: a line that tells something else is none of the answer."""
    after_restart: bool = True
    """Whether it acts only after a restart, or at the next connection to the controller."""
    values: tuple[tuple[str, str], ...] = ()
    """Argument of the command, and the value that the console then shows, if they differ."""

    def shown(self, wish: str) -> str:
        """How the console shows a value."""
        return dict(self.values).get(wish, wish)


STATES = (("enabled", "Enabled"), ("disabled", "Disabled"))
ADDRESS = r"\d{1,3}(\.\d{1,3}){3}"
STATE = r"(?i:enabled|disabled)"
SETTINGS = (
    Setting("name", r"name", "set name {}", r"\S{0,15}", after_restart=False),
    Setting("mac_address", r"mac( address)?", "set mac-address {}", r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"),
    Setting("ip_address", r"ip( address)?", "set ip-address {}", ADDRESS),
    Setting("netmask", r"netmask", "set netmask {}", ADDRESS),
    Setting("gateway", r"gateway", "set gateway {}", ADDRESS),
    Setting("controller_address", r".*controller.*", "set of-controller {}", ADDRESS),
    Setting("controller_port", r".*port", "set of-port {}", r"\d{1,5}"),
    Setting("openflow", r"openflow status", "{}", STATE, after_restart=False, values=STATES),
    Setting(
        "fail_state",
        r"fail ?-?state",
        "set failstate {}",
        r"(?i:secure|safe)",
        after_restart=False,
        values=(("secure", "Secure"), ("safe", "Safe")),
    ),
    Setting(
        "openflow_version",
        r"force.*version",
        "set of-version {}",
        r"(?i:1\.0|1\.3|disabled)",
        after_restart=False,
        values=(("0", "Disabled"), ("1", "1.0"), ("4", "1.3")),
    ),
    Setting(
        "ethertype_filter",
        r"ether ?type.*",
        "set ethertype-filter {}",
        STATE,
        after_restart=False,
        values=STATES,
    ),
)
SWITCHES = {"enabled": "enable", "disabled": "disable"}
"""Values that a command takes as a verb."""


@dataclass(frozen=True)
class Vlan:
    """A VLAN of the board. `kind` is ``openflow``, ``native`` or ``unassigned``."""

    id: int
    name: str
    kind: str
    tagged: bool
    ports: frozenset[int] = frozenset()

    def as_dict(self) -> dict[str, object]:
        """For people and for Ansible's diff."""
        return {
            "id": self.id,
            "name": self.name,
            "type": self.kind,
            "tagged": self.tagged,
            "ports": sorted(self.ports),
        }


def firmware_version(lines: Iterable[str]) -> str:
    """The version in the answer to `show version`."""
    for line in lines:
        number = re.search(r"(?<![\d.])\d+\.\d+(?![\d.])", line)  # no address
        if number:
            return number.group()
    raise UnexpectedTextError("'show version' names no version")


def parse_config(lines: Iterable[str]) -> dict[str, str]:
    """The values in the answer to `show config`, as the console shows them."""
    values: dict[str, str] = {}
    for line in lines:
        label, colon, value = line.strip().partition(":")
        for setting in SETTINGS:
            fits = re.fullmatch(setting.label, label.strip().lower()) and re.fullmatch(
                setting.value, value.strip()
            )
            if colon and setting.key not in values and fits:
                values[setting.key] = value.strip()
                break
    missing = [setting.key for setting in SETTINGS if setting.key not in values]
    if missing:
        raise UnexpectedTextError(f"'show config' does not tell {', '.join(missing)}")
    return values


def parse_vlans(lines: Iterable[str], ports: Mapping[int, frozenset[int]]) -> list[Vlan]:
    """The VLANs in the answer to `show vlans`; `ports` are the VLANs of each port."""
    row = re.compile(r"\s*(\d+)\s+['\"](.*)['\"]\s+(\S+)\s+(\S+)\s*")
    return [
        Vlan(
            id=int(cells[1]),
            name=cells[2],
            kind=cells[3].lower() if cells[3].lower() in ("openflow", "native") else "unassigned",
            tagged=cells[4].lower() == "tagged",
            ports=frozenset(port for port, ids in ports.items() if int(cells[1]) in ids),
        )
        for cells in map(row.fullmatch, lines)
        if cells
    ]


def parse_ports(lines: Iterable[str]) -> dict[int, frozenset[int]]:
    """The VLANs of each port in the answer to `show ports`."""
    ports: dict[int, frozenset[int]] = {}
    port = 0
    for line in map(str.strip, lines):
        if match := re.fullmatch(r"Port (\d+)", line):
            port = int(match[1])
            ports[port] = frozenset()
        elif port and (match := re.fullmatch(r"VLAN ID: *(\d+)", line)):
            ports[port] |= {int(match[1])}
    if set(ports) != set(PORTS):
        raise UnexpectedTextError(f"'show ports' tells of the ports {sorted(ports)}, not of 1 to 4")
    return ports


@dataclass(frozen=True)
class Command:
    """A command and the context in which it is understood."""

    context: str
    text: str


@dataclass(frozen=True)
class Changes:
    """The commands that are still needed."""

    commands: tuple[Command, ...]
    needs_restart: bool


def changes_to(
    config: Mapping[str, str],
    vlans: Sequence[Vlan],
    wished_config: Mapping[str, str],
    wished_vlans: Sequence[Vlan] | None,
) -> Changes:
    """The commands that lead from what a board has to what is wished. What is not wished stays as it is."""
    commands = []
    needs_restart = False
    for setting in SETTINGS:
        wish = wished_config.get(setting.key)
        if wish is None or setting.shown(wish).lower() == config[setting.key].lower():
            continue
        context = "openflow" if setting.key == "openflow" else "config"
        commands.append(Command(context, setting.command.format(SWITCHES.get(wish, wish))))
        needs_restart |= setting.after_restart
    if wished_vlans is not None:
        changes = list(_vlan_commands(vlans, wished_vlans))
        commands += [Command("config", text) for text in changes]
        needs_restart |= bool(changes)
    return Changes(tuple(commands), needs_restart)


def _vlan_commands(present: Sequence[Vlan], wished: Sequence[Vlan]) -> Iterable[str]:
    """First everything goes that must, so that slots and ports are free for what comes."""
    same = {
        wish.id: have
        for wish in wished
        for have in present
        if (have.id, have.name) == (wish.id, wish.name) and sum(vlan.id == have.id for vlan in present) == 1
    }
    stays = {port: have.id for have in same.values() for port in have.ports}
    target = {port: vlan.id for vlan in wished for port in vlan.ports}
    member = {port for vlan in present for port in vlan.ports}
    moved = [
        port for port in PORTS if target.get(port) != stays.get(port) or (port in member) != (port in target)
    ]
    # A port may still be in a deleted VLAN, which is not shown; taking it out does no harm.
    yield from (f"delete vlan-port {port}" for port in moved)
    yield from (f"delete vlan {have.id}" for have in present if have not in same.values())
    for wish in wished:
        have = same.get(wish.id)
        if have is None:
            yield f"add vlan {wish.id} {wish.name}"
        if have is None or have.kind != wish.kind:
            yield f"set vlan-type {wish.id} {wish.kind}"
        if have is None or have.tagged != wish.tagged:
            yield f"set vlan-tag {wish.id} {'tagged' if wish.tagged else 'untagged'}"
        yield from (f"add vlan-port {wish.id} {port}" for port in moved if port in wish.ports)
