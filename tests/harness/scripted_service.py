"""The page of `loko serve` with scripted answers instead of a service: any number of flows, no boards.

The answers are validated against `loko.service.shapes`, so they cannot silently diverge from the real ones.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from loko.admission.routing import paths
from loko.service import shapes
from loko.service.views import topology_values
from loko.topology.lab import Lab

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class ScriptedService:
    """A fake service whose answers may change while a page is open."""

    def __init__(self, lab: Lab, flows: int) -> None:
        self.lab = lab
        hosts = list(lab.hosts)
        self.flows = [self._flow(number, hosts) for number in range(flows)]
        self.delays = {flow["id"]: self._delays(number, flow) for number, flow in enumerate(self.flows)}
        self.notes: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []
        """All requests except GET: method, path, body."""
        self._streams: list[queue.Queue[bytes]] = []

    def _flow(self, number: int, hosts: list[str]) -> dict[str, Any]:
        source = hosts[number % len(hosts)]
        destination = hosts[(number + 1 + number // len(hosts) * 4) % len(hosts)]
        if source == destination:
            destination = hosts[(number + 1) % len(hosts)]
        path = next(iter(paths(self.lab, source, destination)))
        hops = [
            {
                "switch": hop.switch,
                "output_port": hop.output_port,
                "delay_ns": 400_000.0,
                "burst_bytes": 306.0,
            }
            for hop in path
        ]
        flow = {
            **{"id": f"flow-{number}", "source": source, "destination": destination},
            **{"udp_source": 5000 + number, "udp_destination": 6000, "rate_bps": 1000.0 * (1 + number % 7)},
            **{"burst_bytes": 306.0, "frame_bytes": 306, "traffic_class": 1 + number % 2},
            **{"state": "installed", "waiting_for": []},
            **{"broken": [], "reserved": None},
            **{"deadline_ns": None, "promised_ns": 30_000.0 + 400_000 * len(hops)},
            **{"guarantee_ns": 30_000.0 + 400_000 * len(hops), "path": hops, "send_slot": None},
        }
        return shapes.FlowView.model_validate(flow).model_dump(mode="json")

    def _delays(self, number: int, flow: dict[str, Any]) -> dict[str, Any]:
        guarantee_ns = flow["guarantee_ns"]
        counts = [0] * 96
        for step in range(12):
            counts[20 + number % 20 + step] = 1 + step
        most = int(guarantee_ns * (0.4 + number % 50 / 100))
        return shapes.FlowDelaysView.model_validate(
            {
                **{"guarantee_ns": guarantee_ns, "sent": 1000 + number, "received": 1000, "lost": number % 3},
                **{"late": 0, "min_ns": most // 3, "p50_ns": most // 2, "p99_ns": most - 1, "max_ns": most},
                "histogram": {"bin_ns": guarantee_ns / 80, "counts": counts},
            }
        ).model_dump(mode="json")

    def switches(self) -> list[dict[str, Any]]:
        passing = dict.fromkeys(self.lab.switches, 0)
        for flow in self.flows:
            for hop in flow["path"]:
                passing[hop["switch"]] += 1
        return [
            shapes.SwitchView.model_validate(
                {
                    **{"name": name, "datapath_id": f"{index:016x}", "state": "ready", "ready": True},
                    **{"complete": True, "delay_ns": 400_000.0, "foreign_entries": []},
                    **{"exceeds_planned_entries": False, "down_ports": [], "unexpected_ports": []},
                    "use": [
                        {"quantity": "rate", "used": 9e3 * number, "allowed": 9.36e6, "unit": "bit/s",
                         "fraction": number * 9e3 / 9.36e6},
                        {"quantity": "entries", "used": number, "allowed": 128, "unit": "entries",
                         "fraction": number / 128},
                    ],
                }
            ).model_dump(mode="json")
            for index, (name, number) in enumerate(passing.items())
        ]  # fmt: skip

    def get(self, path: str) -> Any:
        if path == "/v1/service":
            return {
                **{"lab": self.lab.name, "title": self.lab.title, "scheme": "loko", "grants": "admission"},
                "options": {"scheme": "loko", "entries": "17", "frame-bytes": "306", "classes": "2"},
                **{"needs_token": False, "measures": "a script's hosts", "emulates": False},
            }
        if path == "/v1/topology":
            return topology_values(self.lab)
        if path == "/v1/notes":
            return {"notes": self.notes}
        if path == "/v1/margin":
            return {"slower_ppm": 10_000, "limited_by": None, "text": "1 % by the script"}
        if path.endswith("/delays"):
            spans = [
                {"ago_ns": ago * 10**9, "sent": 9, "received": 8, "lost": ago == 7, "min_ns": 200_000,
                 "mean_ns": 300_000.0 + 5000 * (ago % 9), "max_ns": 500_000 + 9000 * (ago % 9)}
                for ago in range(100, -1, -1)
            ]  # fmt: skip
            over_time = {"guarantee_ns": 830_000.0, "span_ns": 10**9, "spans": spans}
            return shapes.DelayHistoryView.model_validate(over_time).model_dump(mode="json")
        return None

    def tell(self, *names: str) -> None:
        """Send events to all open pages: `switches`, `flows`, `delays`."""
        for stream in self._streams:
            stream.put(self._events(*names))

    def _events(self, *names: str) -> bytes:
        state = {"switches": self.switches(), "flows": self.flows, "delays": self.delays}
        return "".join(f"event: {name}\ndata: {json.dumps(state[name])}\n\n" for name in names).encode()

    def stream(self) -> Iterator[bytes]:
        told: queue.Queue[bytes] = queue.Queue()
        self._streams.append(told)
        yield self._events("switches", "flows", "delays")
        while True:
            yield told.get()

    def release(self, flow_id: str) -> None:
        self.flows = [flow for flow in self.flows if flow["id"] != flow_id]
        self.tell("switches", "flows")


@contextmanager
def scripted(service: ScriptedService) -> Iterator[str]:
    """Serve the page; yield its address."""
    page = resources.files("loko.service") / "page"

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/events":
                self.close_connection = True
                self._begin(200, "text/event-stream", None)
                try:
                    for text in service.stream():
                        self.wfile.write(text)
                        self.wfile.flush()
                except OSError:
                    return
            elif self.path.startswith("/v1/"):
                self._json(200, service.get(self.path))
            else:
                name = "index.html" if self.path == "/" else self.path.rpartition("/")[2]
                data = (page / name).read_bytes()
                self._begin(200, TYPES[name.rpartition(".")[2]], len(data))
                self.wfile.write(data)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append(("POST", self.path, body))
            self._json(409, {"error": {"code": "conflict", "message": "a script grants nothing"}})

        def do_DELETE(self) -> None:
            service.asked.append(("DELETE", self.path, None))
            self._begin(204, "text/plain", 0)
            service.release(self.path.rpartition("/")[2])

        def _json(self, status: int, values: Any) -> None:
            data = json.dumps(values).encode()
            self._begin(status, "application/json", len(data))
            self.wfile.write(data)

        def _begin(self, status: int, kind: str, length: int | None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    time.sleep(0)
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
