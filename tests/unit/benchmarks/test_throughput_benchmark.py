"""The benchmark of the simulator names its peer, even if that is not installed."""

from __future__ import annotations

import pytest

from benchmarks import throughput
from benchmarks.measure import ProcessUsage


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("3.37-2\n", "ns-3 3.37-2"),
        ("", "ns-3"),
        ("dpkg-query: no packages found matching libns3-dev\n", "ns-3"),
    ],
)
def test_the_peer_is_named(said: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = ProcessUsage(output=said, wall_s=0, cpu_s=0, peak_memory_bytes=0)
    monkeypatch.setattr(throughput.shutil, "which", lambda program: program)
    monkeypatch.setattr(throughput, "run", lambda _: usage)
    assert throughput._peer_name() == name
