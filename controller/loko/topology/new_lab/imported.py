"""Networks that other programs have written: GraphML, GML, NetJSON (NetworkGraph), containerlab, SNDlib.

Of each only nodes and cables are taken and, if they are stated, at which interface each cable ends and the
profile of a switch (attribute or label ``profile``). A node is a host if an attribute (containerlab: a label)
``type``, ``kind`` or ``role`` is ``host``, or in containerlab if it is of kind ``linux`` with one cable; else
it is a switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from loko.document import InputError
from loko.topology.new_lab.containerlab import read_containerlab
from loko.topology.new_lab.gml import read_gml
from loko.topology.new_lab.graphml import read_graphml
from loko.topology.new_lab.netjson import read_netjson
from loko.topology.new_lab.network import Drawing
from loko.topology.new_lab.parsed_network import ParsedNetwork, names_of
from loko.topology.new_lab.sndlib import is_sndlib, read_sndlib

_SUFFIXES: Final = (
    "GraphML (.graphml, .xml), GML (.gml), NetJSON (.json), containerlab (.clab.yml), SNDlib (.txt, .xml)"
)


class Imported(NamedTuple):
    """A file's network as a lab can have it."""

    drawing: Drawing
    renamed: Mapping[str, str]
    """The nodes that have another name in the lab, by what the file calls them."""
    notes: tuple[str, ...]
    """Lines that say what was left out."""


def import_network(path: Path, *, name: str, environment: Mapping[str, str]) -> Imported:
    """Read a file's network. Raises `InputError` in one line."""
    if not path.is_file():
        raise InputError(f"--from {path}: no such file")
    found = _found(path, environment)
    for cable in found.cables:
        for end in cable:
            if end not in found.nodes:
                raise InputError(f"{path}: a cable leads to '{end}', which is no node; add it")
    names = names_of(found.nodes)
    loops = [place for place, (a, b) in enumerate(found.cables) if a == b]
    notes = [
        *found.notes,
        *(f"a cable leads from '{names[found.cables[place][0]]}' to itself; left out" for place in loops),
    ]
    cables = [place for place in range(len(found.cables)) if place not in loops]
    drawing = Drawing(
        name=name,
        title=path.name,
        switches=tuple(names[key] for key, node in found.nodes.items() if not node.is_host),
        hosts=tuple(names[key] for key, node in found.nodes.items() if node.is_host),
        cables=tuple((names[found.cables[place][0]], names[found.cables[place][1]]) for place in cables),
        interfaces=tuple(found.interfaces[place] for place in cables) if found.interfaces else (),
        speeds=tuple(found.speeds[place] for place in cables) if found.speeds else (),
        profiles={names[key]: node.profile for key, node in found.nodes.items() if node.profile},
    )
    called = {key: node.label or key for key, node in found.nodes.items()}
    renamed = {
        label if label == key else f"{label} ({key})": names[key]
        for key, label in called.items()
        if names[key] != label
    }
    return Imported(drawing, renamed, tuple(notes))


def _found(path: Path, environment: Mapping[str, str]) -> ParsedNetwork:
    match path.suffix.lower():
        case ".graphml":
            return read_graphml(path)
        case ".xml":
            return read_sndlib(path) if is_sndlib(path) else read_graphml(path)
        case ".gml":
            return read_gml(path)
        case ".txt" if is_sndlib(path):
            return read_sndlib(path)
        case ".json" | ".netjson":
            return read_netjson(path)
        case ".yml" | ".yaml":
            return read_containerlab(path, environment)
    raise InputError(f"--from {path}: is none of {_SUFFIXES}")
