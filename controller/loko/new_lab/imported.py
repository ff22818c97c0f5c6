"""Networks that other programs have written: GraphML, NetJSON (NetworkGraph), containerlab.

Of each only nodes and cables are taken; of containerlab also what the interfaces of hosts are called, and no
node without a cable. A node is a host if an attribute (containerlab: a label) ``type``, ``kind`` or ``role``
is ``host``, or in containerlab if it is of kind ``linux`` with one cable; else it is a switch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from xml.etree.ElementTree import ParseError

import networkx as nx
from pydantic import BaseModel, Field, ValidationError

from loko.document import InputError, parse, problems, read_text, told
from loko.new_lab.network import Drawing

_SUFFIXES: Final = "GraphML (.graphml), NetJSON (.json), containerlab (.clab.yml)"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SAYS_HOST: Final = ("type", "kind", "role")
_Model = TypeVar("_Model", bound=BaseModel)


class _Node(NamedTuple):
    name: str
    is_host: bool


def imported(path: Path, *, name: str) -> Drawing:
    """The drawing in a file. Raises `InputError` in one line."""
    if not path.is_file():
        raise InputError(f"--from {path}: no such file")
    suffix = path.suffix.lower()
    interfaces: tuple[tuple[str, str], ...] = ()
    if suffix in {".graphml", ".xml"}:
        nodes, cables = _graphml(path)
    elif suffix in {".json", ".netjson"}:
        nodes, cables = _netjson(path)
    elif suffix in {".yml", ".yaml"}:
        nodes, cables, interfaces = _containerlab(path)
    else:
        raise InputError(f"--from {path}: is none of {_SUFFIXES}")
    ids = {key: _name(path, node.name) for key, node in nodes.items()}
    doubles = [name for name, count in Counter(ids.values()).items() if count > 1]
    if doubles:
        raise InputError(f"{path}: two nodes are named '{doubles[0]}'; rename one")
    for a, b in cables:
        if a == b:
            raise InputError(f"{path}: a cable leads from '{ids[a]}' to itself; leave it out")
    return Drawing(
        name=name,
        title=path.name,
        switches=tuple(ids[key] for key, node in nodes.items() if not node.is_host),
        hosts=tuple(ids[key] for key, node in nodes.items() if node.is_host),
        cables=tuple((ids[a], ids[b]) for a, b in cables),
        interfaces=interfaces,
    )


_Found = tuple[dict[str, _Node], list[tuple[str, str]]]


def _graphml(path: Path) -> _Found:
    text = read_text(path)
    try:
        graph = nx.parse_graphml(text)
    except (ParseError, nx.NetworkXError, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: is not GraphML: {why}") from None
    labels = {str(key): str(values.get("label") or key) for key, values in graph.nodes(data=True)}
    nodes = {str(key): _Node(labels[str(key)], _is_host(values)) for key, values in graph.nodes(data=True)}
    return nodes, [(str(a), str(b)) for a, b in graph.edges()]


class _NetJsonNode(BaseModel):
    id: str
    label: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)


class _NetJsonLink(BaseModel):
    source: str
    target: str


class _NetJson(BaseModel):
    """https://netjson.org: a ``NetworkGraph``."""

    type: str
    nodes: list[_NetJsonNode]
    links: list[_NetJsonLink]


def _netjson(path: Path) -> _Found:
    document = _checked(path, _NetJson)
    if document.type != "NetworkGraph":
        raise InputError(f"{path}: is NetJSON of type '{document.type}'; give a NetworkGraph")
    nodes: dict[str, _Node] = {}
    for node in document.nodes:
        if node.id in nodes:
            raise InputError(f"{path}: two nodes are named '{node.id}'; rename one")
        nodes[node.id] = _Node(node.label or node.id, _is_host(node.properties))
    return nodes, _known(path, nodes, ((link.source, link.target) for link in document.links))


class _ClabLink(BaseModel):
    endpoints: list[str] = Field(min_length=2, max_length=2)


class _ClabTopology(BaseModel):
    nodes: dict[str, dict[str, Any] | None]
    links: list[_ClabLink] = Field(default_factory=list)
    defaults: dict[str, Any] = Field(default_factory=dict)
    kinds: dict[str, Any] = Field(default_factory=dict)


class _Clab(BaseModel):
    """A lab of https://containerlab.dev: its nodes and links."""

    topology: _ClabTopology


def _containerlab(path: Path) -> tuple[*_Found, tuple[tuple[str, str], ...]]:
    topology = _checked(path, _Clab).topology
    ends = [tuple(end.partition(":") for end in link.endpoints) for link in topology.links]
    cables = _known(path, topology.nodes, ((a[0], b[0]) for a, b in ends))
    degree = Counter(node for cable in cables for node in cable)
    usual = topology.defaults.get("kind", "")

    def is_host(name: str, values: Mapping[str, Any]) -> bool:
        labels = values.get("labels")
        if isinstance(labels, Mapping) and _is_host(labels):
            return True
        return values.get("kind", usual) == "linux" and degree[name] == 1

    nodes = {
        name: _Node(name, is_host(name, values or {}))
        for name, values in topology.nodes.items()
        if degree[name] or not cables
    }
    return nodes, cables, tuple((a[2], b[2]) for a, b in ends)


def _checked(path: Path, model: type[_Model]) -> _Model:
    parsed = parse(path, read_text(path))
    try:
        return model.model_validate(parsed.data)
    except ValidationError as error:
        first = problems(error)[0]
        raise InputError(told(path, parsed.line(first.at), first.name, first.message)) from None


def _known(
    path: Path, nodes: Mapping[str, object], cables: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    known = list(cables)
    for cable in known:
        for end in cable:
            if end not in nodes:
                raise InputError(f"{path}: a cable leads to '{end}', which is no node; add it")
    return known


def _is_host(values: Mapping[str, Any]) -> bool:
    return any(str(values.get(key, "")).lower() == "host" for key in _SAYS_HOST)


def _name(path: Path, text: str) -> str:
    """A name that files, interfaces and links can have: other characters become a hyphen."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-_.")
    if not _NAME.fullmatch(name):
        raise InputError(f"{path}: a node is named '{text}'; use letters and digits")
    return name
