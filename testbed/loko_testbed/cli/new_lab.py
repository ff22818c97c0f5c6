"""The command `loko lab new`: a lab of one's own, drawn or read from another program's file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from loko import units
from loko.document import InputError
from loko.switch_model.device import load_device, parse_device, profile_names
from loko.terminal import tell
from loko.topology.new_lab.imported import import_network
from loko.topology.new_lab.lab_files import (
    SwitchDevice,
    chosen_profiles,
    lab_text,
    profile_in,
    refuse_existing,
    ring_text,
    simple_device,
    write_lab,
)
from loko.topology.new_lab.network import Drawing, Shape, draw, refuse_hosts, with_hosts

_ZODIAC: Final = "zodiac-fx"
_DEVICE_FILE: Final = "device.toml"
_Value = TypeVar("_Value")
_RING_HOSTS: Final = 2
"""The most at a switch of the short form of a ring."""


def new_lab(
    shape: Annotated[Shape | None, typer.Argument(help="Without it and --from, the command asks.")] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Read the network from GraphML, GML, NetJSON, containerlab or SNDlib."),
    ] = None,
    largest_part: Annotated[
        bool, typer.Option("--largest-part", help="Of a file whose network is not connected.")
    ] = False,
    switches: Annotated[int | None, typer.Option(help="How many switches. Default: 4.")] = None,
    hosts: Annotated[
        int | None,
        typer.Option(help="Hosts at each switch, of a tree at each leaf. Default: 1, or what the file has."),
    ] = None,
    fanout: Annotated[int, typer.Option(min=1, help="Of a tree: switches below each.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write. Default: the shape, or the file's name.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The lab's name. Default: the folder's.")] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help="The switches' device: a profile's name or path, or PATTERN=PROFILE for switches of such"
            " names; repeat it. Default: what the file says, or zodiac-fx.",
            autocompletion=profile_names,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="A simple device instead: what it forwards of all ports, as 95 Mbit/s.")
    ] = None,
    latency: Annotated[str, typer.Option(help="Of a simple device: what a frame takes besides.")] = "50 us",
    buffer: Annotated[
        str, typer.Option(help="Of a simple device: what it holds, as 64 frames or 32 kB.")
    ] = "64 frames",
    ports: Annotated[int, typer.Option(min=1, max=64, help="Of a simple device.")] = 8,
    link_rate: Annotated[str, typer.Option(help="Of a simple device: of each port.")] = "100 Mbit/s",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a lab of your own: a folder with lab.yml, which the other commands take.

    Example: loko lab new ring --switches 4

    Example: loko lab new tree --switches 7 --rate '95 Mbit/s' --latency '40 us' --buffer '64 frames'

    Example: loko lab new --from network.graphml --out mine

    Example: loko lab new --from network.graphml --profile 'core*=dell-s3048-on' --out mine
    """
    if shape is not None and source is not None:
        raise InputError(f"{shape} and --from both say what the network is; leave one out")
    if shape is None and source is None:
        shape, switches, hosts = _asked(switches, hosts)
    folder = out or Path(name or (shape.value if shape else source.stem.split(".")[0] if source else ""))
    lab_name = name or _name_of(folder)
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", lab_name):
        raise InputError(f"--name {lab_name}: use small letters, digits and hyphens, such as my-lab")
    refuse_existing([folder / "lab.yml"], force=force)
    if rate is not None and profile:
        raise InputError("--rate and --profile both say what the device is; leave one out")
    device = (
        None
        if rate is None
        else _simple(lab_name, rate=rate, latency=latency, buffer=buffer, ports=ports, link_rate=link_rate)
    )
    if largest_part and source is None:
        raise InputError("--largest-part: is for networks of --from; leave it out")
    drawing, told = _drawing(
        *(shape, source),
        name=lab_name,
        switches=switches,
        hosts=hosts,
        fanout=fanout,
        largest_part=largest_part,
    )
    files = _files(drawing, shape, folder, profile or [], device)
    lab = write_lab(folder, files, force=force)
    count = f"{len(lab.switches)} switches, {len(lab.machines)} hosts"
    place = shlex.quote(str(folder))
    flows = shlex.quote(str(folder / "flows.yml"))
    for line in told:
        tell(line)
    typer.echo(f"{folder / 'lab.yml'}: {count}. Next:")
    typer.echo(f"  loko flows example {place} --out {flows}")
    typer.echo(f"  loko plan {place} {flows}")


def _asked(switches: int | None, hosts: int | None) -> tuple[Shape, int, int]:
    """Ask for what was not given. Raises `InputError` if there is nobody to ask."""
    try:
        word = typer.prompt("Shape (line, ring, tree)", default=Shape.RING.value)
        if word not in set(Shape):
            raise InputError(f"shape '{word}': choose line, ring or tree")
        switches = switches or typer.prompt("Switches", default=4, type=int)
        hosts = hosts or typer.prompt("Hosts at each", default=1, type=int)
    except (typer.Abort, EOFError):
        raise InputError("no shape given: say line, ring or tree, or --from FILE") from None
    return Shape(word), switches, hosts


def _name_of(folder: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "lab"


def _simple(name: str, *, rate: str, latency: str, buffer: str, ports: int, link_rate: str) -> str:
    return simple_device(
        name=f"{name}-device",
        rate_bps=int(_read("--rate", rate, units.rate_bps)),
        latency_ns=int(_read("--latency", latency, units.time_ns)),
        room=_read("--buffer", buffer, units.size),
        ports=ports,
        link_rate_bps=int(_read("--link-rate", link_rate, units.rate_bps)),
    )


def _read(option: str, text: str, reader: Callable[[object], _Value]) -> _Value:
    try:
        return reader(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def _drawing(
    shape: Shape | None,
    source: Path | None,
    *,
    name: str,
    switches: int | None,
    hosts: int | None,
    fanout: int,
    largest_part: bool,
) -> tuple[Drawing, list[str]]:
    """Draw a shape, or read a file. Also return what was left out of the file or renamed, line by line.

    Its switches get hosts if the file has none, or if hosts are asked for.
    """
    if hosts is not None:
        refuse_hosts(hosts)
    if source is None:
        shaped = draw(
            shape or Shape.RING,
            name=name,
            switches=4 if switches is None else switches,
            hosts=1 if hosts is None else hosts,
            fanout=fanout,
        )
        return shaped, []
    if switches is not None:
        raise InputError("--switches: the file says how many there are; leave it out")
    drawing, renamed, notes = import_network(source, name=name, environment=os.environ)
    told = [f"{source}: {note}" for note in notes]
    if renamed:
        width = max(len(name) for name in renamed.values())
        told.append(f"{source}: these nodes have other names in the lab:")
        told += [f"  {name:{width}}  {label}" for label, name in renamed.items()]
    if largest_part:
        whole, drawing = drawing, drawing.largest_part()
        lost = [
            node
            for node in (*whole.switches, *whole.hosts)
            if node not in (*drawing.switches, *drawing.hosts)
        ]
        if lost:
            told.append(f"{source}: not in the largest part, left out: {', '.join(lost)}")
    if hosts is None and drawing.hosts:
        return drawing, told
    return with_hosts(drawing, hosts or 1, at=list(drawing.switches)), told


def _files(
    drawing: Drawing, shape: Shape | None, folder: Path, profiles: Sequence[str], device: str | None
) -> dict[str, str]:
    """By name, the text of each file of the lab; `device` is a simple device's."""
    if device is not None:
        simple = SwitchDevice(parse_device(device, Path(_DEVICE_FILE)), _DEVICE_FILE)
        return {_DEVICE_FILE: device, "lab.yml": lab_text(drawing, dict.fromkeys(drawing.switches, simple))}
    chosen = chosen_profiles(drawing, profiles, _ZODIAC)
    each = len(drawing.hosts) // max(len(drawing.switches), 1)
    if shape is Shape.RING and set(chosen.values()) == {_ZODIAC} and each <= _RING_HOSTS:
        return {"lab.yml": ring_text(drawing.name, len(drawing.switches), each)}
    known = {
        profile: SwitchDevice(load_device(profile), profile_in(folder, profile))
        for profile in dict.fromkeys(chosen.values())
    }
    return {"lab.yml": lab_text(drawing, {switch: known[profile] for switch, profile in chosen.items()})}
