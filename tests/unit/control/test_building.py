"""Messages for other programs: what the service sends is what os-ken builds, and boards accept it."""

from __future__ import annotations

import pytest

from loko import Flow, flow_mod, flow_mods, frame_of, load_lab, packet_out, plan
from loko_testbed.live.emulation.for_tests import DrivenBoard

LAB = load_lab("two-switch")
FLOW = Flow(
    id="a",
    source="H1",
    destination="H3",
    udp_source=5000,
    udp_destination=6000,
    rate_bps=400e3,
    burst_bytes=306,
    frame_bytes=306,
)
SOURCE, DESTINATION = (str(LAB.hosts[name].ip.ip) for name in (FLOW.source, FLOW.destination))
MATCHES = {
    "1.0": {
        "dl_type": 0x0800,
        "nw_proto": 17,
        "nw_src": SOURCE,
        "nw_dst": DESTINATION,
        "tp_src": 5000,
        "tp_dst": 6000,
    },
    "1.3": {
        "eth_type": 0x0800,
        "ip_proto": 17,
        "ipv4_src": SOURCE,
        "ipv4_dst": DESTINATION,
        "udp_src": 5000,
        "udp_dst": 6000,
    },
}


@pytest.mark.parametrize("openflow", ["1.0", "1.3"])
def test_what_the_service_sends_is_what_os_ken_builds(openflow: str) -> None:
    planned = plan(LAB, [FLOW])
    sent = flow_mods(planned, openflow=openflow)
    ports = {hop.switch: hop.output_port for hop in planned.accepted[0].path}
    assert set(sent) == set(ports) == {"s1", "s2"}
    for switch, messages in sent.items():
        assert messages == [
            flow_mod(
                MATCHES[openflow],
                output=ports[switch],
                priority=100,
                cookie=1,
                openflow=openflow,
            )
        ]


def test_a_board_takes_what_is_built() -> None:
    board, packet = DrivenBoard(), frame_of(LAB, FLOW)
    board.send(flow_mod(MATCHES["1.0"], output=3, cookie=7))
    assert board.frame(1, packet) == {3: packet}
    board.send(flow_mod(MATCHES["1.0"], command="delete-strict", cookie=7))
    assert board.flows() == []
    board.send(packet_out(packet, 2))
    assert board.left == {2: packet}
    assert board.events == []


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ValueError, match="command 'remove': is none of add, modify"):
        flow_mod(command="remove")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exceeds a segment of 536"):
        packet_out(bytes(600), 1)
    with pytest.raises(ValueError, match=r"'1\.1' is not a valid OpenFlow"):
        flow_mod(openflow="1.1")
