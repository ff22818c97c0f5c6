"""Reservations of time beside the flows: cases that users meet in practice, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from loko.switch_model.control_traffic import (
    AS_PRINTED,
    CHANGES_PER_S,
    HEARTBEAT,
    NO_MESSAGES,
    ControlTraffic,
    driver_traffic,
)


class NamedReservation(NamedTuple):
    """Admission's assumptions on the controller and on the tables."""

    traffic: ControlTraffic | None
    padding: int | None
    """For `loko.admission.schemes.admission_of`; None: tables are filled up with padding entries."""
    meaning: str


PRINTED: Final = "as-printed"
"""Nothing is reserved, as in the paper's own figures."""
RESERVATIONS: Final[Mapping[str, NamedReservation]] = MappingProxyType(
    {
        PRINTED: NamedReservation(AS_PRINTED, None, "nothing, as the paper prints it"),
        "board": NamedReservation(NO_MESSAGES, None, "timers and keepalive"),
        "heartbeat": NamedReservation(HEARTBEAT, None, "timers and heartbeat"),
        "changes": NamedReservation(driver_traffic(CHANGES_PER_S), 0, "20 changes/s, no padding"),
        "changes-padding": NamedReservation(
            driver_traffic(CHANGES_PER_S), 10, "20 changes/s, 10 padding entries"
        ),
    }
)
"""Those after `PRINTED` are `loko plan` without --control, `loko plan --control heartbeat=0.5`,
`loko serve`, and `loko serve --padding 10`."""
RENAMED_RESERVATIONS: Final[Mapping[str, str]] = MappingProxyType({"changes-fillers": "changes-padding"})
"""Former names of reservations, each with the present one."""
