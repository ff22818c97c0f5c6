"""Which dialect the driver speaks with a switch of a lab."""

from __future__ import annotations

import pytest

from loko.control.dialect import DIALECTS, OPEN_VSWITCH, SwitchDialect, dialect_of
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Backend, load_lab


@pytest.mark.parametrize(
    ("lab", "backend", "openflow", "dialect"),
    [
        ("two-switch", None, OpenFlow.V1_0, DIALECTS[OpenFlow.V1_0]),
        ("two-switch", None, OpenFlow.V1_3, DIALECTS[OpenFlow.V1_3]),
        ("two-switch", Backend.OVS, OpenFlow.V1_0, OPEN_VSWITCH),
        ("chip-ring", None, OpenFlow.V1_0, OPEN_VSWITCH),
        ("chip-ring", None, OpenFlow.V1_3, DIALECTS[OpenFlow.V1_3]),
    ],
)
def test_the_quirks_of_boards_are_for_boards(
    lab: str, backend: Backend | None, openflow: OpenFlow, dialect: SwitchDialect
) -> None:
    assert dialect_of(load_lab(lab).with_backend(backend).switches["s1"], openflow) is dialect
