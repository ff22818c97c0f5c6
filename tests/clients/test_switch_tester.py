"""A board with `quirks = "spec"` passes os-ken's switch tester for 1.3, except for explained failures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import switch_tester
from live_harness import needs_namespaces

DOCUMENT = Path(__file__).parents[2] / "docs" / "openflow13.md"
TRIED = (
    "action/00_OUTPUT",
    "action/18_POP_VLAN",
    "action/19_PUSH_MPLS_multiple",
    "25_SET_FIELD/08_IP_DSCP_IPv6",
    "25_SET_FIELD/10_IP_PROTO_IPv4",
    "25_SET_FIELD/17_SCTP_SRC_IPv4",
    "25_SET_FIELD/38_TUNNEL_ID",
    "match/36_MPLS_BOS",
)
"""A sample of each kind that takes a minute; `switch_tester.py` runs all."""


def failures(cases: list[switch_tester.Case]) -> dict[str, int]:
    return dict(Counter(case.file for case in cases if case.reason))


@pytest.mark.namespaces
@pytest.mark.waits
@needs_namespaces
def test_the_specification_is_kept_but_where_explained(program: Path, tmp_path: Path) -> None:
    suite = switch_tester.files()
    if suite is None:
        pytest.skip(f"the tester is not installed: {switch_tester.missing()}")
    chosen = [path for path in sorted(suite.rglob("*.json")) if any(it in str(path) for it in TRIED)]
    cases = switch_tester.run(program, tmp_path, chosen, quirks="spec")
    tried = {case.file for case in cases}
    assert len(tried) == len(chosen) == len(TRIED)
    known = {name: told["failed"] for name, told in switch_tester.explained().items() if name in tried}
    assert failures(cases) == known, [case for case in cases if case.reason]


def test_what_the_tester_says_is_read() -> None:
    log = (
        "--- Test start ---\nmatch: 00_IN_PORT\n"
        "    ethernet/ipv4/tcp-->'in_port=1,actions=output:2'                 OK\n"
        "    ethernet/ipv4/tcp-->'in_port=2,actions=output:2'                 ERROR\n"
        "        Failed to add flows: OFPErrorMsg[type=0x02, code=0x0d]\n"
        "---  Test end  ---\n    ethernet                 OK\n"
    )
    first, second = switch_tester.read(log)
    assert (first.file, first.reason) == ("match: 00_IN_PORT", "")
    assert second.reason == "Failed to add flows: OFPErrorMsg[type=0x02, code=0x0d]"


def test_documentation_tells_what_fails() -> None:
    text = DOCUMENT.read_text()
    for name, told in switch_tester.explained().items():
        assert f"| {name} | {told['failed']} | {told['why']} |" in text
