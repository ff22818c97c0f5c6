"""Links of the OpenAPI document: from an answer to the requests that its values are meant for."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class _OperationLink(NamedTuple):
    """A request that can follow on an answer."""

    method: str
    path: str
    parameter: str | None = None
    """The parameter of its path."""
    value: str = ""
    """Where the answer or its request has the parameter, as a runtime expression of OpenAPI."""


_Links = dict[str, _OperationLink]
_FLOW: Final = "/v1/flows/{flow_id}"


def _of_flow(value: str) -> _Links:
    return {
        "ShowFlow": _OperationLink("get", _FLOW, "flow_id", value),
        "ShowDelays": _OperationLink("get", f"{_FLOW}/delays", "flow_id", value),
        "ReleaseFlow": _OperationLink("delete", _FLOW, "flow_id", value),
    }


def _of_host(value: str) -> _Links:
    return {
        "ShowSends": _OperationLink("get", "/v1/hosts/{host}/sends", "host", value),
        "ShowSource": _OperationLink("get", "/v1/hosts/{host}/source", "host", value),
    }


_LINKS: Final[dict[tuple[str, str, str], _Links]] = {
    ("post", "/v1/flows", "200"): _of_flow("$response.body#/id"),
    ("post", "/v1/flows", "201"): _of_flow("$response.body#/id"),
    ("post", "/v1/slots", "200"): _of_flow("$response.body#/id") | _of_host("$response.body#/source"),
    ("post", "/v1/slots", "201"): _of_flow("$response.body#/id") | _of_host("$response.body#/source"),
    ("post", "/v1/what-if/flow", "200"): {"RequestFlow": _OperationLink("post", "/v1/flows")},
    ("post", "/v1/what-if/slot", "200"): {"RequestSlot": _OperationLink("post", "/v1/slots")},
    ("get", "/v1/flows", "200"): _of_flow("$response.body#/flows/0/id"),
    ("get", _FLOW, "200"): _of_flow("$response.body#/id"),
    ("delete", _FLOW, "202"): {"ShowFlow": _of_flow("$response.body#/id")["ShowFlow"]},
    ("get", "/v1/topology", "200"): _of_host("$response.body#/hosts/0/name"),
}
"""Links by name, by method, path and status of the answer."""


def add_links(document: dict[str, Any]) -> None:
    """Add the links to an OpenAPI document that has all of these answers."""
    paths = document["paths"]
    for (method, path, status), links in _LINKS.items():
        paths[path][method]["responses"][status]["links"] = {
            name: {"operationId": paths[link.path][link.method]["operationId"]}
            | (
                {"requestBody": "$request.body"}
                if link.parameter is None
                else {"parameters": {link.parameter: link.value}}
            )
            for name, link in links.items()
        }
