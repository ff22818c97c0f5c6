"""Profiles of managed switches as datasheets describe them, and rings of them."""

from __future__ import annotations

from pathlib import Path

from loko.topology.lab import Lab, load_lab

OWN_BUFFERS = """limit_frames = { value = 64, source = "datasheet", note = "of each queue" }
"""
SHARED_BUFFER = """limit_frames = { value = 1000, source = "assumption", note = "shared memory limits first" }

[buffer]
pool_bytes = { value = 192_000, source = "datasheet", note = "192 kB shared packet buffer" }
factor_percent = { value = 100, source = "assumption" }
"""


def managed_switch(
    buffers: str, *, queues: int = 2, vlans: int | None = None, reserved_bytes: int | None = None
) -> str:
    """Return the profile of a gigabit switch with eight ports; `buffers` is one of the texts above."""
    reserved = "" if reserved_bytes is None else f"reserved_bytes = {_number(reserved_bytes)}\n"
    return f"""
format = 1
kind = "generic-switch"
name = "acme-8g"
title = "Acme 8-port gigabit, web-managed"

[ports]
count = {_number(8)}
link_rate_bps = {_number(1_000_000_000)}

[table]
entries = {_number(4096)}
{"" if vlans is None else f"vlans = {_number(vlans)}"}

[forwarding]
latency_ns = {_number(5_000)}

[priorities]
queues = {_number(queues)}
check_ns = {{ value = 0, source = "assumption" }}
{buffers}{reserved}"""


def ring_of_managed(folder: Path, profile: str, *, switches: int = 4, hosts_each: int = 1) -> Lab:
    """Return a ring of such switches, with cables both ways, written to a folder."""
    (folder / "switch.toml").write_text(profile)
    hosts = [(n, k, n * hosts_each + k) for n in range(switches) for k in range(hosts_each)]
    (folder / "lab.yml").write_text(
        "\n".join(
            [
                "name: managed-ring",
                "title: ring of managed switches",
                "switches:",
                *(
                    f'  s{n}: {{datapath_id: "00:00:02:00:00:00:01:{n + 1:02x}", profile: ./switch.toml}}'
                    for n in range(switches)
                ),
                "hosts:",
                *(
                    f'  h{at}: {{mac: "02:00:00:00:00:{at + 1:02x}", ip: 10.0.0.{at + 1}/24}}'
                    for _, _, at in hosts
                ),
                "links:",
                *(f'  - {{a: h{at}, b: "s{n}:{3 + k}"}}' for n, k, at in hosts),
                *(f'  - {{a: "s{n}:1", b: "s{(n + 1) % switches}:2"}}' for n in range(switches)),
            ]
        )
        + "\n"
    )
    return load_lab(str(folder))


def _number(value: int) -> str:
    return f'{{ value = {value}, source = "datasheet" }}'
