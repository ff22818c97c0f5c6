"""Networks of SNDlib (https://sndlib.put.poznan.pl), in its native text format or in XML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from loko.document import InputError, read_text
from loko.topology.new_lab.parsed_network import Cable, ParsedNetwork, ParsedNode, network_of_arcs

_NAMESPACE: Final = "http://sndlib.zib.de/network"
_XML: Final = f"{{{_NAMESPACE}}}"
_NATIVE: Final = re.compile(r"\s*\?SNDlib native format;\s*type:\s*network\b")
_SECTION: Final = r"^\s*{name}\s*\(\s*$(?P<lines>.*?)^\s*\)\s*$"
_NODE: Final = re.compile(r"^\s*([^\s()#]+)", re.MULTILINE)
_LINK: Final = re.compile(r"^\s*[^\s()#]+\s*\(\s*([^\s()]+)\s+([^\s()]+)\s*\)", re.MULTILINE)


def is_sndlib(path: Path) -> bool:
    """Return whether a file is one of SNDlib's. Raises `InputError` if it cannot be read."""
    text = read_text(path)
    return _NATIVE.match(text) is not None or _NAMESPACE in text


def read_sndlib(path: Path) -> ParsedNetwork:
    """Read the nodes and links of a file. Raises `InputError` in one line.

    A directed network lists a link from both sides; such links are one cable.
    """
    text = read_text(path)
    if _NATIVE.match(text):
        nodes = _NODE.findall(_section(path, text, "NODES"))
        return _network(nodes, _LINK.findall(_section(path, text, "LINKS")))
    try:
        root = ET.fromstring(text)  # noqa: S314 - a file of the user's own
    except ET.ParseError as error:
        raise InputError(f"{path}: is not XML: {error}") from None
    arcs = [
        (link.findtext(f"{_XML}source", ""), link.findtext(f"{_XML}target", ""))
        for link in root.iter(f"{_XML}link")
    ]
    return _network((node.get("id", "") for node in root.iter(f"{_XML}node")), arcs)


def _network(nodes: Iterable[str], arcs: list[Cable]) -> ParsedNetwork:
    return network_of_arcs({node: ParsedNode(node, is_host=False) for node in nodes}, arcs)


def _section(path: Path, text: str, name: str) -> str:
    found = re.search(_SECTION.format(name=name), text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise InputError(f"{path}: has no section {name} ( … ) with lines of its own")
    return found["lines"]
