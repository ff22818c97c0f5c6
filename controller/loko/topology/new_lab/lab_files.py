"""A drawing as a lab's files: ports and addresses are given, the text is checked, then all is written."""

from __future__ import annotations

import fnmatch
import ipaddress
import itertools
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from loko.document import PROFILES, InputError
from loko.switch_model.device import Device, Profile, profile_file, profile_names
from loko.topology.lab import Lab, is_interface_name, load_lab
from loko.topology.new_lab.network import Drawing
from loko.topology.schemas import SCHEMA_FOLDER, schema_line, schema_of
from loko.units import DataSize

_PORT: Final = re.compile(r"(?:eth)?([1-9][0-9]{0,3})")
"""The name of a switch's interface whose number is its port."""
_FEW: Final = 6
"""So many switches are named in a message."""
_HOSTS: Final = ipaddress.IPv4Network("10.0.0.0/8")


def simple_device(
    *, name: str, rate_bps: int, latency_ns: int, room: DataSize, ports: int, link_rate_bps: int
) -> str:
    """The profile of a simple device (docs/devices.md), as a file's text."""
    key, value = ("frames", room.frames) if room.frames else ("bytes", room.bytes)
    return f"""# A simple device: a rate, a latency and a buffer for all ports together (docs/devices.md).
# A number is a table {{ value, source, range, note }}; units are in the names.
format = 1
kind = "generic-switch"
name = "{name}"
title = "Simple device"

[ports]
count = {{ value = {ports}, source = "assumption" }}
link_rate_bps = {{ value = {link_rate_bps}, source = "assumption" }}

[table]
entries = {{ value = 1000, source = "assumption" }}

[server]
rate_bps = {{ value = {rate_bps}, source = "assumption" }}
buffer_{key} = {{ value = {int(value)}, source = "assumption" }}

[forwarding]
latency_ns = {{ value = {latency_ns}, source = "assumption" }}
"""


class SwitchDevice(NamedTuple):
    """The device of a switch, and how the lab's file names its profile."""

    device: Device
    profile: str


def chosen_profiles(drawing: Drawing, options: Sequence[str], default: str) -> dict[str, str]:
    """Return the profile of each switch, by name.

    `options` are profiles, or `PATTERN=PROFILE` for switches whose names match as file names do in a shell.
    The first pattern decides, then a profile for all, then what the drawing states, then `default`. Raises
    `InputError` for a pattern that no switch matches, or two profiles for all.
    """
    for_all = [option for option in options if "=" not in option]
    if len(for_all) > 1:
        raise InputError(
            f"--profile {' and '.join(for_all)}: both are for all switches; give PATTERN=PROFILE"
        )
    patterns = [option.partition("=")[::2] for option in options if "=" in option]
    for pattern, _ in patterns:
        if not fnmatch.filter(drawing.switches, pattern):
            known = ", ".join(drawing.switches[:_FEW]) + (", …" if len(drawing.switches) > _FEW else "")
            raise InputError(f"--profile {pattern}=…: no switch has such a name ({known})")
    chosen = {}
    for switch in drawing.switches:
        matching = (profile for pattern, profile in patterns if fnmatch.fnmatchcase(switch, pattern))
        stated = (*matching, *for_all, drawing.profiles.get(switch, default))
        chosen[switch] = stated[0]
    return chosen


def lab_text(drawing: Drawing, devices: Mapping[str, SwitchDevice]) -> str:
    """Return the content of a lab's file, with the devices of its switches.

    Raises `InputError` for more cables than a device has ports.
    """
    drawing.check()
    cables = Counter(node for cable in drawing.cables for node in cable)
    ports = {switch: devices[switch].device.ports.count.value for switch in drawing.switches}
    for switch in drawing.switches:
        if (count := cables[switch]) > ports[switch]:
            raise InputError(
                f"{drawing.title}: {switch} needs {count} ports, and {devices[switch].device.name} has"
                f" {ports[switch]}; take fewer hosts or cables, or another device (--profile, --rate)"
            )
    used: Counter[str] = Counter()
    interfaces = {host: _interfaces(drawing, host) for host in drawing.hosts if cables[host] > 1}
    at = interfaces | {switch: _ports(drawing, switch, ports[switch]) for switch in drawing.switches}

    def end(node: str) -> str:
        used[node] += 1
        return f"{node}:{at[node][used[node] - 1]}" if node in at else node

    speeds = drawing.speeds or [""] * len(drawing.cables)
    links = [
        {"a": end(a), "b": end(b), **({"speed": speed} if speed else {})}
        for (a, b), speed in zip(drawing.cables, speeds, strict=True)
    ]
    return _text(
        {
            "name": drawing.name,
            "title": drawing.title,
            "switches": {
                switch: _switch(number, *devices[switch]) for number, switch in enumerate(drawing.switches, 1)
            },
            "hosts": _hosts(drawing.hosts, interfaces),
            "links": links,
        }
    )


def _hosts(hosts: Iterable[str], interfaces: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """The hosts with their addresses: one interface for each cable."""
    numbers = itertools.count(1)
    return {
        host: {"interfaces": {name: _host(next(numbers)) for name in interfaces[host]}}
        if host in interfaces
        else _host(next(numbers))
        for host in hosts
    }


def _interfaces(drawing: Drawing, host: str) -> list[str]:
    """Return the names of a host's interfaces, in order of its cables: as drawn, or eth1, eth2 and so on."""
    names = _drawn_interfaces(drawing, host)
    if len(set(names)) == len(names) and all(map(is_interface_name, names)):
        return names
    return [f"eth{number}" for number in range(1, len(names) + 1)]


def _ports(drawing: Drawing, switch: str, count: int) -> list[int]:
    """Return the ports of a switch in order of its cables: as drawn, or the lowest that are free."""
    found = [_PORT.fullmatch(name) for name in _drawn_interfaces(drawing, switch)]
    drawn = [int(port[1]) if port else 0 for port in found]
    stated = [port for port in drawn if port]
    if len(set(stated)) < len(stated) or max(stated, default=0) > count:
        drawn, stated = [0] * len(drawn), []
    free = (port for port in itertools.count(1) if port not in stated)
    return [port or next(free) for port in drawn]


def _drawn_interfaces(drawing: Drawing, node: str) -> list[str]:
    """Return the names of a node's interfaces in order of its cables; empty where none is drawn."""
    named = drawing.interfaces or [("", "")] * len(drawing.cables)
    return [
        interface
        for ends, interfaces in zip(drawing.cables, named, strict=True)
        for end, interface in zip(ends, interfaces, strict=True)
        if end == node
    ]


def ring_text(name: str, switches: int, hosts: int) -> str:
    """The short form for Zodiac FX: it stands for switches, hosts and links."""
    ring = {"switches": switches, "hosts_per_switch": hosts, "one_way": False}
    return _text({"name": name, "title": f"Ring of {switches} switches", "ring": ring})


def profile_in(folder: Path, profile: str) -> str:
    """How a lab in this folder names a profile: by its name, or by the path from there."""
    file = profile_file(profile)
    is_known = file.parent == PROFILES.resolve() or profile in profile_names()
    return profile if is_known else os.path.relpath(file, folder.resolve())


def write_lab(folder: Path, files: Mapping[str, str], *, force: bool) -> Lab:
    """Write a lab's files, with the schema that editors complete it by. All or none, and only if they fit.

    Raises `InputError` if one is there already, unless `force` replaces it, or if they are no lab.
    """
    texts = {
        **files,
        f"{SCHEMA_FOLDER}/lab.json": _json("lab"),
        f"{SCHEMA_FOLDER}/flows.json": _json("flows"),
    }
    refuse_existing([folder / name for name in files], force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".loko-new-") as new:
        for name, text in texts.items():
            path = Path(new) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        load_lab(Path(new) / "lab.yml")  # paths from a folder beside are the same
        folder.mkdir(exist_ok=True)
        for name in texts:
            (folder / name).parent.mkdir(exist_ok=True)
            (Path(new) / name).replace(folder / name)
    return load_lab(folder / "lab.yml")


def refuse_existing(paths: list[Path], *, force: bool) -> None:
    """Raise `InputError` for the first file that is there already, unless it may be replaced."""
    for path in paths:
        if path.exists() and not force:
            raise InputError(f"{path}: is there already; choose another place, or replace it with --force")


def _switch(number: int, device: Device, profile: str) -> dict[str, object]:
    block, place = divmod(number - 1, 250)
    if isinstance(device, Profile):
        mac = f"70:b3:d5:6c:{block:02x}:{place + 1:02x}"
        config: dict[str, object] = {"mac": mac, "ofchecks": False}  # section 3.1
        return {"datapath_id": f"00:00:{mac}", "profile": profile, "config": config}
    return {"datapath_id": f"00:00:02:b1:00:00:{block:02x}:{place + 1:02x}", "profile": profile}


def _host(number: int) -> dict[str, str]:
    high, low = divmod(number - 1, 250)
    address = _HOSTS.network_address + (high << 8) + low + 1
    third, second = divmod(high, 256)[::-1]
    return {"mac": f"02:00:00:{second:02x}:{third:02x}:{low + 1:02x}", "ip": f"{address}/{_HOSTS.prefixlen}"}


def _text(values: Mapping[str, Any]) -> str:
    body = yaml.safe_dump(dict(values), sort_keys=False, default_flow_style=None, width=110)
    return f"{schema_line('lab')}\n{body}"


def _json(what: str) -> str:
    return json.dumps(schema_of(what), indent=1) + "\n"
