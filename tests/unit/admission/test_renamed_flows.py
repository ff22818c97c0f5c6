"""A flow that gets another id and other ports takes what it took, and leaves what it would have left."""

from __future__ import annotations

import pytest

from loko.admission import Admission, Admitted
from loko.admission.schemes import SchemeName, SchemeVariant, admission_of, variant_named
from loko.document import InputError
from loko.switch_model.allocation import JOINT, PACKET_GRANULAR
from loko.switch_model.flow import DuplicateFlowError, Flow
from loko.switch_model.scenario import loko_scenario
from loko.topology.lab import load_lab

SCHEMES = ("full-rate", PACKET_GRANULAR, JOINT, "silo", SchemeName.PORTS.value)


def flow(number: int, flow_id: str | None = None) -> Flow:
    return Flow(flow_id or f"f{number}", "H1", "H3", number, 6000, 2e4, 306.0, 306)


def filled(scheme: str) -> Admission:
    """Return an admission control that has admitted two flows."""
    scenario = loko_scenario(entries=17, packet_sizes_bytes=(306,))
    if scheme == SchemeName.PORTS.value:
        admission = admission_of(load_lab("chip-ring"), SchemeVariant(scheme=SchemeName.PORTS), scenario)
    elif scheme == JOINT:
        choice = SchemeVariant(scheme=SchemeName.PACKETS, allocation=JOINT)
        admission = admission_of(load_lab("two-switch"), choice, scenario)
    else:
        admission = admission_of(load_lab("two-switch"), variant_named(scheme), scenario)
    assert all(isinstance(admission.request(flow(number)), Admitted) for number in (1, 2))
    return admission


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_renamed_flow_leaves_what_it_would_have_left(scheme: str) -> None:
    renamed, other = filled(scheme), filled(scheme)
    admitted = renamed.rename("f1", flow(9))
    assert admitted == other.admitted["f1"]._replace(flow=flow(9))
    assert set(renamed.admitted) == {"f2", "f9"}
    switches = [hop.switch for hop in admitted.path]
    assert renamed.drain_time_ns("f9") == other.drain_time_ns("f1")
    assert [renamed.usage(name) for name in switches] == [other.usage(name) for name in switches]
    renamed.check(flow(1))  # raises an error unless its id and ports are free
    if scheme == JOINT:  # its flows are never released
        renamed.cancel("f9")
        other.cancel("f1")
    else:
        renamed.release("f9", now_ns=1_000)
        other.release("f1", now_ns=1_000)
    for now_ns in (1_000, 1_000_000, 50_000_000):
        renamed.advance(now_ns)
        other.advance(now_ns)
        assert [renamed.usage(name) for name in switches] == [other.usage(name) for name in switches]
        servers = renamed.servers(admitted)
        assert [renamed.residual_backlog(name) for name in servers] == [
            other.residual_backlog(name) for name in servers
        ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_flow_is_not_renamed_to_what_is_in_use(scheme: str) -> None:
    admission = filled(scheme)
    for taken in (flow(9, "f2"), flow(2, "f9")):
        with pytest.raises(DuplicateFlowError):
            admission.rename("f1", taken)
    with pytest.raises(InputError):
        admission.rename("f3", flow(9))
    assert set(admission.admitted) == {"f1", "f2"}
    assert admission.admitted["f1"].flow == flow(1)
