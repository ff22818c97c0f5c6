"""Traffic of low priority: which ports it fills, and how full."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko.admission.planning import Plan
from loko.control.entries import Output
from loko.notebook_api import plan
from loko.switch_model.device import profile_text
from loko.switch_model.flow import Flow
from loko.topology.lab import Lab, lab_of, load_lab
from loko_testbed.cli.replay import replay_twice
from loko_testbed.simulation.traffic import Releases
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.delivery import transmit
from loko_testbed.simulation.worst_case.other_traffic import OtherTraffic, at_line_rate

A_MS = 1_000_000


def case_of(lab: Lab, source: str, destination: str) -> AdmittedSet:
    planned: Plan = plan(lab, [Flow("a", source, destination, 1, 2, 1e6, 306.0, 306)], scheme="ports")
    assert planned.accepted
    return AdmittedSet(lab=lab, scheme=planned.scheme, admitted=planned.accepted, entries=17)


def frames_by_sender(others: OtherTraffic) -> list[int]:
    return [len(sender.sends.instants_ns) for sender in others.senders if isinstance(sender.sends, Releases)]


def test_every_port_by_which_flows_may_leave_a_crossed_switch_is_filled() -> None:
    """From H1 to H2 by s1 and s2 of the ring. Nothing leaves by port 3, where the one-way cables end."""
    case = case_of(load_lab("chip-ring"), "H1", "H2")
    others = at_line_rate(case.lab, case.admitted, duration_ns=A_MS)
    ports = {name: {entry.output_port for entry in entries} for name, entries in others.entries.items()}
    assert ports == {"s1": {1, 2}, "s2": {1, 2}}
    assert all(
        isinstance(action, Output)
        for entries in others.entries.values()
        for entry in entries
        for action in entry.actions
    )
    assert others.unfilled == ()
    assert frames_by_sender(others) == [82] * 4  # 1,538 bytes take 12.304 us


def test_the_frames_pass_one_cable() -> None:
    """Frames from s1 match no entry at s2. All that s2 forwards comes from its own free ports."""
    case = case_of(load_lab("chip-ring"), "H1", "H2")
    others = at_line_rate(case.lab, case.admitted, duration_ns=10 * A_MS)
    records = transmit(case, [], seed=1, duration_ns=10 * A_MS, others=others)
    at_each_port = 10 * A_MS // 12_304 + 1
    assert [records.boards[name]["forwarded"] for name in ("s1", "s2")] == [2 * at_each_port] * 2
    assert [records.boards[name]["missed"] for name in ("s1", "s2", "s3")] == [0, at_each_port, at_each_port]


@pytest.mark.parametrize(("hosts", "free"), [(47, 1), (48, 0)])
def test_ports_share_a_line_where_free_ports_are_few(hosts: int, free: int) -> None:
    lab = lab_of(
        {
            "name": "full",
            "title": "one switch with cables at nearly all ports",
            "switches": {"s1": {"datapath_id": "00:00:02:00:00:00:01:01", "profile": "nec-pf5240"}},
            "hosts": {
                f"h{n}": {"mac": f"02:00:00:00:00:{n:02x}", "ip": f"198.18.0.{n}/15"}
                for n in range(1, hosts + 1)
            },
            "links": [{"a": f"h{n}", "b": f"s1:{n}"} for n in range(1, hosts + 1)],
            "control_port": 0,
        }
    )
    others = at_line_rate(lab, case_of(lab, "h1", "h2").admitted, duration_ns=A_MS)
    assert len(others.lab.hosts) - len(lab.hosts) == free
    assert len({host.ip.ip for host in others.lab.hosts.values()}) == len(others.lab.hosts)
    assert sum(frames_by_sender(others)) == 82 * free
    assert others.unfilled == (() if free else ("s1",))


@pytest.mark.parametrize(("entries", "filled"), [(3, 2), (2, 1), (1, 0)])
def test_flows_that_fill_a_table_leave_no_entry_to_others(tmp_path: Path, entries: int, filled: int) -> None:
    small = tmp_path / "small.toml"
    small.write_text(profile_text("ideal-1g", "table", entries=entries), encoding="utf-8")
    lab = lab_of(
        {
            "name": "one",
            "title": "one switch",
            "switches": {"s1": {"datapath_id": "00:00:02:00:00:00:01:01", "profile": str(small)}},
            "hosts": {f"h{n}": {"mac": f"02:00:00:00:00:0{n}", "ip": f"10.0.0.{n}/24"} for n in (1, 2)},
            "links": [{"a": "h1", "b": "s1:1"}, {"a": "h2", "b": "s1:2"}],
            "control_port": 0,
        }
    )
    planned = plan(lab, [Flow("a", "h1", "h2", 1, 2, 1e6, 306.0, 306)])
    others = at_line_rate(lab, planned.accepted, duration_ns=A_MS)
    assert len(others.entries.get("s1", ())) == filled
    assert others.unfilled == (() if filled else ("s1",))
    assert not any(result.broken for result in replay_twice(lab, planned, seconds=0.1, seed=1))
