"""Step 0: which ports of a switch share a service, from what they forward together."""

from __future__ import annotations

import pytest

from loko_testbed.measure.predictability.independent_services import (
    Ports,
    independent_services,
    measure,
    port_sets,
)
from loko_testbed.measure.predictability.subject import switch_under_test


def rates_of(groups: list[set[int]], *, group: float = 1.0, most: float = float("inf")) -> dict[Ports, float]:
    """Return the rates of a switch whose ports forward 1, each group at most `group`, all at most `most`."""
    ports = sum(map(len, groups))
    return {
        chosen: min(most, sum(min(group, len(chosen & members)) for members in groups))
        for chosen in port_sets(ports)
    }


@pytest.mark.parametrize("groups", [[{1, 2, 3, 4}], [{1}, {2}, {3}], [{1, 3}, {2, 4}], [{1}, {2, 3, 4}]])
def test_ports_that_slow_each_other_down_share_a_service(groups: list[set[int]]) -> None:
    assert [set(group) for group in independent_services(rates_of(groups))] == groups


def test_a_limit_of_all_ports_together_makes_them_one() -> None:
    """Pairs do not reach the limit, as of the HP E3800's lookup."""
    rates = rates_of([{1}, {2}, {3}, {4}], most=3.0)
    assert independent_services(rates) == [frozenset({1, 2, 3, 4})]


def test_a_spread_of_times_is_no_sharing() -> None:
    rates = {ports: rate * (0.97 if len(ports) > 1 else 1) for ports, rate in rates_of([{1}, {2}]).items()}
    assert len(independent_services(rates)) == 2


def test_a_set_that_was_not_measured_is_named() -> None:
    rates = rates_of([{1}, {2}, {3}])
    del rates[frozenset({1, 3})]
    with pytest.raises(ValueError, match=r"\[1, 3\]"):
        independent_services(rates)


@pytest.mark.parametrize(("device", "services"), [("zodiac-fx", 1), ("hp-e3800", 1), ("ideal-1g", 8)])
def test_simulated_switches_have_the_services_of_their_profiles(device: str, services: int) -> None:
    subject = switch_under_test(device)
    assert len(independent_services(measure(subject, min(8, subject.ports), seed=1))) == services
