"""The trial of a REST interface for all of OpenFlow 1.0 (`ofctl_rest`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench import Bench
from board_network import DATAPATH_ID, HOSTS
from wiretap import Kind

TABLE_ENTRIES = 128
SEND_FLOW_REMOVED = 1
PORT_DOWN = 1
KEY = str(DATAPATH_ID)


def rest(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Try everything that `ofctl_rest` offers for OpenFlow 1.0."""
    bench.handshake()
    yield "switches", bench.request("GET", "/stats/switches") == [DATAPATH_ID]
    yield from descriptions(bench)
    yield from flow_entries(bench)
    yield from deletions(bench)
    yield from timeouts(bench)
    yield from long_replies(bench)


def descriptions(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Request information about the board and its ports."""
    yield "description", _stats(bench, "desc")["sw_desc"] == "0.84"
    yield "port statistics", [port["port_no"] for port in _stats(bench, "port")] == list(HOSTS)
    yield "statistics of one port", [port["port_no"] for port in _stats(bench, "port", "/2")] == [2]
    yield "size of the table", _stats(bench, "table")[0]["max_entries"] == TABLE_ENTRIES
    again = [[port["hw_addr"] for port in _stats(bench, "portdesc")] for _ in range(2)]
    yield "addresses of ports", again[0] == again[1]
    yield "aggregate statistics", bool(_stats(bench, "aggregateflow"))
    before = len(bench.tap.from_board(Kind.STATS_REPLY))
    _stats(bench, "queue")
    yield "queue statistics", len(bench.tap.from_board(Kind.STATS_REPLY)) > before
    bench.request(
        "POST", "/stats/portdesc/modify", {"dpid": DATAPATH_ID, "port_no": 3, "config": 1, "mask": 1}
    )
    yield "PORT_MOD", _stats(bench, "portdesc")[2]["config"] == PORT_DOWN


def flow_entries(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Add, list and modify entries."""
    _change(bench, "add", {"in_port": 1}, output=2, priority=10, cookie=1, idle_timeout=70, hard_timeout=90)
    _change(bench, "add", {"in_port": 2}, output=1, priority=20, cookie=2)
    _stats(bench, "flow")  # the reply confirms that the entries are installed
    before = bench.packet_ins()
    yield "flow entries", bench.network.ping(1, 2, count=2) == 2 and bench.packet_ins() == before
    flows = _stats(bench, "flow")
    yield (
        "flow statistics: match, actions, cookie",
        _summary(flows) == [(1, 1, "OUTPUT:2"), (2, 2, "OUTPUT:1")],
    )
    yield "flow statistics: packets", all(flow["packet_count"] >= 2 for flow in flows)
    fields = ("priority", "idle_timeout", "hard_timeout")
    told = [tuple(flow[field] for field in fields) for flow in flows]
    yield "flow statistics: priority and timeouts", told == [(10, 70, 90), (20, 0, 0)]
    chosen = bench.request("POST", "/stats/flow/{board}", {"match": {"in_port": 2}})[KEY]
    yield "flow statistics for a match", len(chosen) == 1
    _change(bench, "modify", {"in_port": 2}, output=3, priority=20, cookie=2)
    # A board lists its entries in lookup order, so the first one is in effect.
    changed = [flow for flow in _summary(_stats(bench, "flow")) if flow[0] == 2]
    yield "MODIFY of an entry", changed == [(2, 2, "OUTPUT:3")]
    _change(bench, "add", {"in_port": 1}, output=3, priority=10, cookie=3)
    same = [flow for flow in _summary(_stats(bench, "flow")) if flow[0] == 1]
    yield "ADD of an identical entry", same == [(1, 3, "OUTPUT:3")]


def deletions(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Delete entries: all of them, one by its priority, one of several."""
    bench.request("DELETE", "/stats/flowentry/clear/{board}")
    yield "DELETE of all entries", _stats(bench, "flow") == []
    for port in HOSTS:
        _change(bench, "add", {"in_port": port}, output=port % 3 + 1, priority=port, cookie=port)
    _change(bench, "delete_strict", {"in_port": 3}, output=1, priority=3)
    yield "DELETE_STRICT by priority", [flow[0] for flow in _summary(_stats(bench, "flow"))] == [1, 2]
    bench.request("DELETE", "/stats/flowentry/clear/{board}")
    for port in HOSTS:
        flags = SEND_FLOW_REMOVED
        _change(bench, "add", {"in_port": port}, output=port % 3 + 1, priority=port, cookie=port, flags=flags)
    _change(bench, "delete", {"in_port": 1}, output=2)
    yield "DELETE of one of several entries", [flow[0] for flow in _summary(_stats(bench, "flow"))] == [2, 3]
    yield "FLOW_REMOVED after a DELETE", bool(bench.tap.from_board(Kind.FLOW_REMOVED))
    bench.request("DELETE", "/stats/flowentry/clear/{board}")


def timeouts(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Wait for an entry with a hard timeout to expire."""
    exercise = "hard timeout"
    if bench.asks(exercise):
        _change(bench, "add", {"in_port": 1}, output=2, hard_timeout=1)
        time.sleep(3.5)
        yield exercise, _stats(bench, "flow") == []


def long_replies(bench: Bench) -> Iterator[tuple[str, bool]]:
    """Request replies that need several TCP segments; the last is longer than a board can write."""
    bench.request("DELETE", "/stats/flowentry/clear/{board}")
    for number in range(1, 31):
        _change(bench, "add", _udp(number), output=2, priority=number)
        if number == 15:
            yield "flow statistics of 15 entries", len(_stats(bench, "flow")) == number
    yield "flow statistics of 30 entries", len(_stats(bench, "flow")) == 30
    exercise = "flow statistics of 20 entries with two actions"
    if bench.asks(exercise):
        bench.request("DELETE", "/stats/flowentry/clear/{board}")
        actions = [{"type": "OUTPUT", "port": 2}, {"type": "OUTPUT", "port": 3}]
        for number in range(1, 21):
            _change(bench, "add", _udp(number), priority=number, actions=actions)
        yield exercise, len(_stats(bench, "flow")) == 20


def _udp(port: int) -> dict[str, int]:
    return {"dl_type": 0x0800, "nw_proto": 17, "tp_dst": port}


def _change(
    bench: Bench, how: str, match: dict[str, int], *, output: int | None = None, **fields: Any
) -> None:
    actions = [] if output is None else [{"type": "OUTPUT", "port": output}]
    body = {"dpid": DATAPATH_ID, "match": match, "actions": actions, **fields}
    bench.request("POST", f"/stats/flowentry/{how}", body)


def _stats(bench: Bench, kind: str, rest: str = "") -> Any:
    return bench.request("GET", f"/stats/{kind}/{{board}}{rest}")[KEY]


def _summary(flows: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    return [(flow["match"].get("in_port", 0), flow["cookie"], ",".join(flow["actions"])) for flow in flows]
