"""Each instrument exists once: taps, namespaces, cables, trees of HTB, the framing of OpenFlow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("testbed", "controller", "benchmarks", "tests")
ALONE = {"tests/clients/send_discovery.py", "tests/harness/random_boards.py"}
"""Programs for environments without this project."""
PLACES = {
    r"AF_PACKET": "testbed/loko_testbed/instruments/packet_tap.py",
    r"SO_TIMESTAMP": "testbed/loko_testbed/instruments/packet_tap.py",
    r"PACKET_RX_RING": "testbed/loko_testbed/instruments/segment_tap.py",
    r"unshare\(_CLONE_NEWNET\)": "testbed/loko_testbed/instruments/network_namespace.py",
    r"\"nsenter\"": "testbed/loko_testbed/instruments/network_namespace.py",
    r"\"veth\", \"peer\"": "testbed/loko_testbed/instruments/cables.py",
    r"\"class\", \"add\"": "testbed/loko_testbed/instruments/traffic_control.py",
    r"Struct\(\"!BBHI\"\)": "controller/loko/control/framing.py",
}
"""The one module of each instrument, by a pattern of the instrument's code."""


@pytest.mark.parametrize("mark", PLACES)
def test_an_instrument_is_in_one_place(mark: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__) and re.search(mark, path.read_text(encoding="utf-8"))
    }
    assert found - ALONE == {PLACES[mark]}
