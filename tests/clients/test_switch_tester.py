"""os-ken's switch tester has the outcomes recorded in `switch_tester.yml`, and each failure has a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import switch_tester
import switch_tester_compare
import switch_tester_outcomes
from live_harness import needs_namespaces
from switch_tester import Case
from switch_tester_outcomes import Suite, differences

SUITES = switch_tester_outcomes.load()
QUIRKS = Path(__file__).parents[2] / "docs" / "quirks.md"
AT_ONCE = 2
"""A process of the tester takes a second of CPU time to start, and then mostly waits, as other tests do."""
SAMPLE = (
    "action/00_OUTPUT",
    "action/18_POP_VLAN",
    "action/19_PUSH_MPLS_multiple",
    "action/25_SET_FIELD/08_IP_DSCP_IPv6",
    "action/25_SET_FIELD/10_IP_PROTO_IPv4",
    "action/25_SET_FIELD/17_SCTP_SRC_IPv4",
    "action/25_SET_FIELD/38_TUNNEL_ID",
    "match/36_MPLS_BOS",
)
"""Files for 1.3 of each kind; all files take minutes: `make switch-tester`."""
MADE_UP = Suite.parse(
    {
        "counts": {"match/A": 2, "match/B": 1},
        "deviations": [
            {"modes": ["spec"], "why": "no tunnels", "messages": ["Failed"], "cases": {"match/B": "all"}}
        ],
    }
)
RECORDED = [
    Case("match/A", 1, "ethernet", ""),
    Case("match/A", 2, "arp", ""),
    Case("match/B", 1, "ipv4", "Failed to add flows"),
]


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
@pytest.mark.parametrize(
    ("version", "mode", "files"),
    [
        ("1.0", "spec", SUITES["1.0"].counts),
        ("1.0", "firmware", SUITES["1.0"].counts),
        ("1.3", "spec", SAMPLE),
    ],
    ids=["1.0-spec", "1.0-firmware", "1.3-spec-sample"],
)
def test_outcomes(version: str, mode: str, files: tuple[str, ...], program: Path, tmp_path: Path) -> None:
    if missing := switch_tester.missing():
        pytest.skip(missing)
    found = switch_tester_compare.compare(
        SUITES[version], version, mode, list(files), program, tmp_path, at_once=AT_ONCE
    )
    assert not found


@pytest.mark.parametrize("version", SUITES)
def test_every_case_of_the_tester_is_recorded(version: str) -> None:
    if missing := switch_tester.missing():
        pytest.skip(missing)
    assert switch_tester_compare.unrecorded(SUITES[version], version) == []
    fewer = dict(SUITES[version].counts)
    file, count = fewer.popitem()
    suite = Suite(
        counts=fewer,
        deviations=(),
        left_out=SUITES[version].left_out,
        left_out_why="",
    )
    assert switch_tester_compare.unrecorded(suite, version) == [f"{file}: {count} cases, 0 recorded"]


def test_every_quirk_exists() -> None:
    known = {int(number) for number in re.findall(r"^\| (\d+) \|", QUIRKS.read_text(), re.MULTILINE)}
    deviations = [deviation for suite in SUITES.values() for deviation in suite.deviations]
    assert {quirk for deviation in deviations for quirk in deviation.quirks} <= known
    assert all(deviation.quirks for deviation in deviations if deviation.modes == ("firmware",))


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({}, []),
        ({0: Case("match/A", 1, "ethernet", "Receiving timeout")}, ["match/A"]),  # fails, should pass
        ({2: Case("match/B", 1, "ipv4", "")}, ["match/B"]),  # passes, should fail
        ({2: Case("match/B", 1, "ipv4", "Receiving timeout")}, ["match/B"]),  # fails for another reason
        ({1: None}, ["match/A"]),  # was not run
        ({1: None, 0: None}, ["match/A"]),
        ({3: Case("match/C", 1, "ipv4", "")}, ["match/C"]),  # is not recorded
    ],
)
def test_what_differs(change: dict[int, Case | None], difference: list[str]) -> None:
    observed = [case for case in {**dict(enumerate(RECORDED)), **change}.values() if case is not None]
    found = list(differences(MADE_UP, "spec", ["match/A", "match/B"], observed))
    assert [file for file, _ in found] == difference


@pytest.mark.parametrize(
    "change",
    [{"why": ""}, {"messages": []}, {"modes": ["board"]}, {"cases": {"match/A": [3]}}],
)
def test_a_deviation_needs_a_reason_and_existing_cases(change: dict[str, object]) -> None:
    good = {"modes": ["spec"], "why": "because", "messages": ["Failed"], "cases": {"match/A": [1]}}
    data = {"counts": {"match/A": 2}, "deviations": [good | change]}
    with pytest.raises(ValueError, match="match/A"):
        Suite.parse(data)


def test_what_the_tester_says_is_read() -> None:
    log = (
        "--- Test start ---\nmatch/00_IN_PORT\n"
        "    ethernet/ipv4/tcp-->'in_port=1,actions=output:2'                 OK\n"
        "    ethernet/ipv4/tcp-->'in_port=2,actions=output:2'                 ERROR\n"
        "        Failed to add flows: OFPErrorMsg[type=0x02, code=0x0d]\n"
        "action/25_SET_FIELD/38_TUNNEL_ID\n"
        "    arp                                                              OK\n"
        "---  Test end  ---\n    ethernet                 OK\n"
    )
    first, second, third = switch_tester.read(log)
    assert (first.file, first.number, first.message) == ("match/00_IN_PORT", 1, "")
    assert (second.number, second.message) == (2, "Failed to add flows: OFPErrorMsg[type=0x02, code=0x0d]")
    assert (third.file, third.number) == ("action/25_SET_FIELD/38_TUNNEL_ID", 1)


def test_documentation_tells_the_outcomes() -> None:
    text = switch_tester_outcomes.DOCUMENT.read_text()
    written = switch_tester_outcomes.written(text)
    assert written == text, "run 'python tests/clients/switch_tester_outcomes.py'"
