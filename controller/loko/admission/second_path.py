"""The second path of a flow in an admission control: its backup path, or that of its second copies."""

from __future__ import annotations

from typing import Final

from loko.switch_model.flow import Flow

_SUFFIX: Final = " again"


def on_second_path(flow: Flow) -> Flow:
    """Return a flow under an id and a port that no flow has, for its second path.

    The original has a valid id and port, so a negative port and an id with a space cannot meet another's.
    """
    return flow._replace(id=f"{flow.id}{_SUFFIX}", udp_source=-flow.udp_source)


def original_id(flow_id: str) -> str:
    """Return the id that a flow was requested by, for that of `on_second_path` as well."""
    return flow_id.removesuffix(_SUFFIX)
