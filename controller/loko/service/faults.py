"""Faults that somebody causes on purpose in a lab that is emulated: cables pulled, switches rebooted."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from loko.document import InputError
from loko.switch_model.device import Profile
from loko.topology.lab import Lab, Link

RESTART: Final = b"\rrestart\r"
"""Restarts a Zodiac FX, typed at its serial console: the first key after power-up counts as Enter."""


class FaultKind(StrEnum):
    """The action on a cable or a switch."""

    PULL = "pull"
    """The cable is pulled out."""
    PLUG = "plug"
    """The cable is plugged in again."""
    REBOOT = "reboot"
    """The switch restarts, and loses all but its saved settings."""


class Fault(NamedTuple):
    """A fault at one place, or the end of one."""

    kind: FaultKind
    place: str
    """A cable, as `s1:3-s2:3`, or a switch."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Fault:
        """Return the fault that plain values describe."""
        return cls(FaultKind(values["kind"]), values["place"])

    def refuse_unknown_place(self, lab: Lab) -> None:
        """Raise `InputError` if the lab has no such cable, or no such switch that can restart."""
        if self.kind is not FaultKind.REBOOT:
            cable_named(lab, self.place)
            return
        if self.place not in lab.switches:
            raise InputError(
                f"lab '{lab.name}' has no switch '{self.place}'; its switches: {', '.join(lab.switches)}"
            )
        if self.place not in switches_that_restart(lab):
            profile = lab.switches[self.place].profile
            raise InputError(f"{self.place}: {profile.name} cannot restart here; only a Zodiac FX can")


def switches_that_restart(lab: Lab) -> tuple[str, ...]:
    """Return the switches that can be rebooted where they are emulated."""
    return tuple(name for name, switch in lab.switches.items() if isinstance(switch.profile, Profile))


def cable_named(lab: Lab, name: str) -> Link:
    """Return a cable by its name, which may begin at either end. Raises `InputError` if there is none."""
    for link in lab.links:
        if name in {link.name, f"{link.b}-{link.a}"}:
            return link
    raise InputError(f"lab '{lab.name}' has no cable '{name}'; name both ends, such as {lab.links[0].name}")
