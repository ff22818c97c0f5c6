"""Figures of schedules on random networks: what is compared, and that it depends on the document alone."""

from __future__ import annotations

import pytest

from evaluation.kinds.experiments import experiments
from loko.document import InputError

pytest.importorskip("networkx")

from evaluation.kinds.schedules.document import Topology
from evaluation.kinds.schedules.production import scenarios_of
from evaluation.kinds.schedules.scenario import Scenario, carry_out, network

FIGURE = experiments()["tssdn/fig4c"]


def scenario(flows=40, slots=3, seed=1, topology=FIGURE.topologies[0]) -> Scenario:
    return Scenario(
        topology=topology, hosts=FIGURE.hosts, switches=FIGURE.switches, flows=flows, slots=slots, seed=seed
    )


def test_the_paper_has_160_scenarios_of_8_topologies() -> None:
    found = scenarios_of(FIGURE, FIGURE.scale, seed=1)
    assert len(found) == len(set(found)) == 160
    assert {one.flows for one in found} == set(range(20, 111, 10))
    models = [topology.model for topology in FIGURE.topologies]
    assert [models.count(model) for model in ("random-regular", "erdos-renyi", "barabasi-albert")] == [
        3,
        2,
        3,
    ]


@pytest.mark.parametrize(
    "topology", FIGURE.topologies, ids=lambda topology: f"{topology.model}-{topology.seed}"
)
def test_a_scheme_that_allows_more_paths_schedules_as_many_flows_at_least(topology) -> None:
    row = carry_out(scenario(topology=topology, flows=30))
    assert row.s_fr <= row.s_pr <= row.s_ur <= row.s_ur_bound <= row.flows
    assert row.s_fr <= row.s_fr_bound
    assert row.s_pr <= row.s_pr_bound


def test_a_scenario_gives_the_same_whenever_it_is_asked() -> None:
    assert carry_out(scenario()) == carry_out(scenario())
    assert carry_out(scenario(seed=1)) != carry_out(scenario(seed=2))


@pytest.mark.parametrize(
    ("model", "parameter", "cables"),
    [("erdos-renyi", 14, 14), ("random-regular", 4, 12), ("barabasi-albert", 2, 8), ("waxman", 2.0, None)],
)
def test_networks_are_of_their_models(model, parameter, cables) -> None:
    graph = network(Topology(model=model, parameter=float(parameter), seed=1), hosts=24, switches=6)
    assert len(graph.hosts) == 24
    if cables is not None:
        assert len(graph.links) == 2 * (24 + cables)


@pytest.mark.parametrize(
    ("model", "parameter", "told"),
    [("erdos-renyi", 1, "is not connected"), ("random-regular", 7, "random-regular")],
)
def test_a_network_that_cannot_be_is_told(model, parameter, told) -> None:
    with pytest.raises(InputError, match=told):
        network(Topology(model=model, parameter=float(parameter), seed=1), hosts=24, switches=6)
