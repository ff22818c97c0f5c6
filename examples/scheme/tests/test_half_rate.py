"""Half of the rate goes to flows, each with a guarantee."""

from __future__ import annotations

from loko import Flow, plan


def test_flows_get_half_of_the_rate() -> None:
    """It accepts more than fifth-rate may, and not more than half of the switch."""
    flows = [
        Flow(
            id=f"f{number}",
            source="H1",
            destination="H3",
            udp_source=1000 + number,
            udp_destination=2000,
            rate_bps=1e6,
            burst_bytes=306.0,
            frame_bytes=306,
        )
        for number in range(16)
    ]
    planned = plan("two-switch", flows, scheme="half-rate")
    assert planned.scheme == "half-rate"
    assert planned.accepted
    assert planned.refused
    used_bps = sum(admitted.flow.rate_bps for admitted in planned.accepted)
    more, less = (
        plan("two-switch", flows, allocation=allocation).allocations["s1"].max_rate_bps
        for allocation in ("full-rate", "fifth-rate")
    )
    assert less < used_bps <= more / 2
