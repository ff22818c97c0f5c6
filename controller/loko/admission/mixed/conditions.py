"""The conditions of guarantees in labs with switches of both kinds (docs/mixed-labs.md)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from loko.admission.port_queues.conditions import CONDITIONS as OF_PORTS
from loko.admission.port_queues.conditions import used_of_ports
from loko.switch_model.device import Device, has_shared_server
from loko.topology.conditions import (
    ONLY_THESE_FLOWS,
    Condition,
    SchemeConditions,
    Terms,
    as_profiled,
    of_one_server,
    used_of_one_server,
)


def _shared(terms: Terms) -> tuple[str, ...]:
    names = [name for name, switch in terms.lab.switches.items() if has_shared_server(switch.profile)]
    return (f"These forward for all ports by one server: {', '.join(names)}.",)


def _applies_to_ports(condition: Condition, terms: Terms) -> bool:
    """Return whether a condition of port queues applies: if a switch has such queues, and the rest is so."""
    is_shared = [has_shared_server(switch.profile) for switch in terms.lab.switches.values()]
    return not all(is_shared) and condition.applies(terms)


def _used(key: str, device: Device, terms: Terms) -> bool:
    return (used_of_one_server if has_shared_server(device) else used_of_ports)(key, device, terms)


OTHER_TRAFFIC_ELSEWHERE: Final = Condition(
    id="other-traffic-elsewhere",
    text="No frame but those of these flows comes to a switch that forwards for all ports by one server."
    " Hosts have static ARP entries.",
    details=_shared,
)
_OWN: Final = {
    ONLY_THESE_FLOWS.id: OTHER_TRAFFIC_ELSEWHERE,
    (profiled := as_profiled(_used)).id: profiled,
}
"""In place of those of one kind: other traffic may pass the switches with a queue for each port."""


def _united() -> tuple[Condition, ...]:
    by_id = {condition.id: condition for condition in of_one_server().conditions}
    of_ports_alone = (condition for condition in OF_PORTS.conditions if condition.id not in by_id)
    by_id |= {
        condition.id: replace(condition, applies=partial(_applies_to_ports, condition))
        for condition in of_ports_alone
    }
    return tuple(_OWN.get(name, condition) for name, condition in by_id.items())


CONDITIONS: Final = SchemeConditions(conditions=_united())
"""Those of both kinds of switches, each once."""
