"""Tables of switches whose agents take their time for each entry."""

from __future__ import annotations

from loko.notebook_api import plan
from loko.switch_model.flow import Flow
from loko.topology.lab import lab_of
from loko_testbed.simulation.virtual import VirtualRunner


def test_a_run_begins_when_a_slow_agent_has_its_table() -> None:
    """The agent of `nec-pf5240` takes 1.9 ms more for each entry that is there: 0.26 s for 17."""
    lab = lab_of(
        {
            "name": "one",
            "title": "one switch",
            "switches": {"s1": {"datapath_id": "00:00:02:00:00:00:01:01", "profile": "nec-pf5240"}},
            "hosts": {f"h{n}": {"mac": f"02:00:00:00:00:0{n}", "ip": f"10.0.0.{n}/24"} for n in (1, 2)},
            "links": [{"a": "h1", "b": "s1:1"}, {"a": "h2", "b": "s1:2"}],
            "control_port": 0,
        }
    )
    planned = plan(lab, [Flow("a", "h1", "h2", 1, 2, 1e6, 306.0, 306)])
    with VirtualRunner(lab, planned.accepted, entries=17) as runner:
        assert runner.powered(seed=1).now_ns >= 1_900_000 * sum(range(17))
