"""The bench's messages in either version of OpenFlow: greeting, barrier, emptying of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from os_ken.ofproto import ofproto_v1_0 as of10
from os_ken.ofproto import ofproto_v1_0_parser as parser10
from os_ken.ofproto import ofproto_v1_3 as of13
from os_ken.ofproto import ofproto_v1_3_parser as parser13

from loko.control import messages, messages13, os_ken_messages13
from loko.control.os_ken_messages import PROTOCOL, serialized
from loko.switch_model.scenario import OpenFlow


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Messages of one version as bytes, and the types of messages by their meaning."""

    hello: bytes
    """Names this version alone, so that the session uses it."""
    features_request: bytes
    barrier_request: bytes
    echo_request: bytes
    delete_all: bytes
    """Empties the tables."""
    barrier_reply: int
    statistics_request: int
    """Request whose reply may need several segments."""


DIALECTS: Final[Mapping[OpenFlow, Dialect]] = MappingProxyType(
    {
        OpenFlow.V1_0: Dialect(
            hello=messages.hello(1),
            features_request=messages.features_request(2),
            barrier_request=messages.barrier_request(1),
            echo_request=messages.echo_request(1),
            delete_all=serialized(
                parser10.OFPFlowMod(
                    PROTOCOL,
                    parser10.OFPMatch(wildcards=of10.OFPFW_ALL),
                    cookie=0,
                    command=of10.OFPFC_DELETE,
                    out_port=of10.OFPP_NONE,
                    actions=[],
                ),
                1,
            ),
            barrier_reply=of10.OFPT_BARRIER_REPLY,
            statistics_request=of10.OFPT_STATS_REQUEST,
        ),
        OpenFlow.V1_3: Dialect(
            hello=serialized(parser13.OFPHello(os_ken_messages13.PROTOCOL), 1),
            features_request=messages13.features_request(2),
            barrier_request=messages13.barrier_request(1),
            echo_request=messages13.echo_request(1),
            delete_all=serialized(
                parser13.OFPFlowMod(
                    os_ken_messages13.PROTOCOL,
                    table_id=of13.OFPTT_ALL,
                    command=of13.OFPFC_DELETE,
                    out_port=of13.OFPP_ANY,
                    out_group=of13.OFPG_ANY,
                ),
                1,
            ),
            barrier_reply=of13.OFPT_BARRIER_REPLY,
            statistics_request=of13.OFPT_MULTIPART_REQUEST,
        ),
    }
)
