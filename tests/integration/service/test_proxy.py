"""The service behind nginx with `setup/service/nginx.conf`: attacks end there, and others are served."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from reserved_port import ReservedPort
from served_lab import TIMEOUT_S, ServedLab, flow, wait_for

from benchmarks.builds import BUILD

CONFIGURATION = Path(__file__).resolve().parents[3] / "setup" / "service" / "nginx.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin") or shutil.which(
    BUILD / ".clients" / "nginx" / "usr" / "sbin" / "nginx"
)
NAME = "loko.example"
TOKEN = "a-token-of-enough-length"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
MAIN = """\
daemon off;
master_process off;
pid {folder}/pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/loko.conf;
}}
"""
GET = f"GET %s HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
HEADERS = f"POST /v1/flows HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n".encode()
HALF = [
    HEADERS,
    HEADERS + b"Content-Length: 500\r\n\r\n{",
    HEADERS + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
]


@dataclass
class ProxiedService:
    """A service behind a proxy at a port of this machine."""

    lab: ServedLab
    port: int
    context: ssl.SSLContext

    @contextlib.contextmanager
    def client(self, address: str, name: str = NAME) -> Iterator[httpx.Client]:
        """Give a client with an address of its own, which asks for a host by its name."""
        with httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            transport=httpx.HTTPTransport(local_address=address, verify=self.context),
            headers={"host": name},
            event_hooks={"request": [lambda request: request.extensions.update(sni_hostname=NAME)]},
            timeout=TIMEOUT_S,
        ) as client:
            yield client

    def connection(self, address: str, data: bytes = b"") -> ssl.SSLSocket:
        """Return a connection from an address over which `data` was sent."""
        plain = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S, source_address=(address, 0))
        connection = self.context.wrap_socket(plain, server_hostname=NAME)
        connection.sendall(data)
        return connection

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the service's samples of a metric that have these labels."""
        families = text_string_to_metric_families(self.lab.client.get("/metrics").text)
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def serves(self) -> None:
        """Check that a client with an address of its own gets a flow, and releases it."""
        with self.client("127.0.0.1") as client:
            assert client.post("/v1/flows", json=flow(1), headers=AUTHORIZED).status_code == 201
            assert client.delete("/v1/flows/f1", headers=AUTHORIZED).status_code == 204


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedService]:
    if NGINX is None:
        pytest.skip("nginx is not installed: run 'make clients'")
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "token").write_text(TOKEN)
    certificate = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    names = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    files = ("-out", folder / "loko.pem", "-keyout", folder / "loko.key")
    subprocess.run(["openssl", *certificate, *names, *files], check=True, capture_output=True)
    options = ("--allow-host", NAME, "--token-file", str(folder / "token"), "--requests-per-s", "1000")
    port = ReservedPort()
    with ServedLab(folder, *options) as lab, (folder / "nginx.log").open("w") as log:
        text = CONFIGURATION.read_text(encoding="utf-8")
        for shipped, here in (
            ("listen 443 ", f"listen 127.0.0.1:{port.number} "),
            ("127.0.0.1:8080 ", f"127.0.0.1:{lab.rest} "),
            ("/etc/ssl/", f"{folder}/"),
        ):
            assert shipped in text
            text = text.replace(shipped, here)
        (folder / "loko.conf").write_text(text)
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
        nginx = subprocess.Popen(
            [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"], stderr=log
        )
        context = ssl.create_default_context(cafile=folder / "loko.pem")
        try:
            service = ProxiedService(lab, port.number, context)
            wait_for(lambda: listens(nginx, port.number), "nginx", (folder / "nginx.log").read_text)
            yield service
        finally:
            nginx.terminate()
            nginx.wait(TIMEOUT_S)
            port.release()


def listens(nginx: subprocess.Popen[bytes], port: int) -> bool:
    assert nginx.poll() is None
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_flows_come_and_go_with_the_token(proxied: ProxiedService) -> None:
    proxied.serves()
    with proxied.client("127.0.0.1") as client:
        assert client.post("/v1/flows", json=flow(1)).status_code == 401
        own = {**AUTHORIZED, "origin": f"https://{NAME}"}
        assert client.post("/v1/flows", json=flow(1), headers=own).status_code == 201
        foreign = {**AUTHORIZED, "origin": "https://evil.example"}
        assert client.delete("/v1/flows/f1", headers=foreign).status_code == 403
        with client.stream("GET", "/v1/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: switches"  # at once, though the stream does not end
            assert client.delete("/v1/flows/f1", headers=own).status_code == 204
            while '"name":"f1"' not in next(lines).replace(" ", ""):
                pass


def test_no_other_name_leads_to_the_service(proxied: ProxiedService) -> None:
    with proxied.client("127.0.0.1", "evil.example") as client:
        assert client.get("/v1/flows").status_code == 421
    assert proxied.metric("loko_refusals_total", reason="foreign-host") == 0


def test_requests_that_are_never_complete_do_not_reach_the_service(proxied: ProxiedService) -> None:
    with contextlib.ExitStack() as open_:
        slow = [
            open_.enter_context(proxied.connection("127.0.0.2", data))
            for data in (*HALF, b"")
            for _ in range(100)
        ]
        proxied.serves()
        assert proxied.metric("loko_clients", kind="connections") <= 3
        for client in slow:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(100)[:12] in {b"", b"HTTP/1.1 408", b"HTTP/1.1 429"}
    assert proxied.metric("loko_clients_too_slow_total") == 0


def test_what_is_too_large_does_not_reach_the_service(proxied: ProxiedService) -> None:
    def posts() -> float:
        return proxied.metric("loko_http_answers_total", method="POST")

    before = posts()
    with proxied.client("127.0.0.1") as client:
        assert client.post("/v1/flows", content=bytes(16_385)).status_code == 413
        assert client.post("/v1/flows", content=iter([bytes(9_000)] * 2)).status_code == 413
        headers = {f"x-{number}": "x" * 1000 for number in range(100)}
        assert client.post("/v1/flows", json=flow(1), headers=headers).status_code == 400
    assert posts() == before


def test_each_address_has_its_own_rate(proxied: ProxiedService) -> None:
    with proxied.connection("127.0.0.3", GET % b"/nothing" * 500) as client:
        answers = b""
        while answers.count(b"HTTP/1.1 ") < 500:
            answers += client.recv(65_536)
    assert answers.count(b"HTTP/1.1 404 ") >= 100
    assert answers.count(b"HTTP/1.1 429 ") > 0
    proxied.serves()


def test_each_address_has_its_own_event_streams(proxied: ProxiedService) -> None:
    with contextlib.ExitStack() as open_:
        statuses = []
        for address in ["127.0.0.4"] * 6 + ["127.0.0.5"]:
            stream = open_.enter_context(proxied.connection(address, GET % b"/v1/events"))
            statuses.append(stream.recv(100)[9:12])
        assert statuses == [b"200"] * 4 + [b"429"] * 2 + [b"200"]
