"""The second path of a flow in an admission control: its backup path, or that of its second copies."""

from __future__ import annotations

from loko.switch_model.flow import Flow


def on_second_path(flow: Flow) -> Flow:
    """Return a flow under an id and a port that no flow has, for its second path.

    The original has a valid id and port, so a negative port and an id with a space cannot meet another's.
    """
    return flow._replace(id=f"{flow.id} again", udp_source=-flow.udp_source)
