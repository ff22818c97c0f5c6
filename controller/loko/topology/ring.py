"""Rings of switches (section 6.2): `ring:` of a lab file, written out as switches, hosts and links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import Field, field_validator

from loko.document import StrictModel

Setting = str | int | bool | list[int] | dict[str, list[str]]
"""A value of a board's configuration."""
_BLOCK: Final = 250
"""Switches whose addresses differ in the last byte alone."""
_MOST: Final = 16 * _BLOCK
"""The maker of the Zodiac FX has the MAC addresses from 70:b3:d5:6c:00:00 to 70:b3:d5:6c:0f:ff."""


def _as_in_the_paper() -> dict[str, Setting]:
    return {"ofchecks": False}  # section 3.1


class Ring(StrictModel):
    """A ring s1, s2, ... with one host (h1, h2, ...) or two (h1a, h1b, h2a, ...) at each switch.

    With one host: port 1 leads to it, 2 to the next switch, 3 back, 4 to the controller. With two: 1 and 2
    to them, 3 to the next switch, 4 back; then no port is left for the controller's frames, so its sessions
    are kept beside. The addresses of a switch and its hosts are the same in a ring of any size.
    """

    switches: int = Field(ge=3)
    hosts_per_switch: int = Field(default=1, ge=1, le=2)
    one_way: bool = True
    """Whether flows go round in one direction only; else no shortest path is longer than half the ring."""
    profile: str = "zodiac-fx"
    config: dict[str, Setting] = Field(default_factory=_as_in_the_paper)

    @field_validator("switches")
    @classmethod
    def _has_addresses(cls, switches: int) -> int:
        if switches > _MOST:
            raise ValueError(
                f"{switches} boards, but a ring has MAC addresses for {_MOST}, of the 4,096 of their maker;"
                " write a larger network out as switches, hosts and links"
            )
        return switches

    @property
    def stated_config(self) -> dict[str, Setting]:
        """The settings that somebody wrote; the others are of a Zodiac FX, and no other device takes them."""
        return self.config if "config" in self.model_fields_set else {}

    @property
    def next_port(self) -> int:
        """Port that leads to the next switch; the one after it leads back."""
        return self.hosts_per_switch + 1

    @property
    def control_port(self) -> int:
        """Port that is kept for the controller; 0 if none is."""
        return 4 if self.hosts_per_switch == 1 else 0

    def host(self, number: int, which: int = 0) -> str:
        """Name of a host of switch `number`, counted from 1 and round the ring."""
        place = (number - 1) % self.switches + 1
        return f"h{place}" if self.hosts_per_switch == 1 else f"h{place}{'ab'[which]}"

    def switch(self, number: int) -> str:
        """Name of a switch, counted from 1 and round the ring."""
        return f"s{(number - 1) % self.switches + 1}"

    def written_out(self) -> dict[str, object]:
        """The parts of a lab file that the ring stands for."""
        numbers = range(1, self.switches + 1)
        return {
            "switches": {self.switch(number): self._board(number) for number in numbers},
            "hosts": dict(self._hosts()),
            "links": list(self._links()),
            "control_port": self.control_port,
        }

    def _board(self, number: int) -> dict[str, object]:
        block, place = _place(number)
        mac = f"70:b3:d5:6c:{block:02x}:{place:02x}"
        config: dict[str, Setting] = {"mac": mac, **self.config}
        if self.control_port:
            config.setdefault("ip_address", f"10.1.{block}.{place}")
            config.setdefault("netmask", "255.255.255.0" if self.switches <= _BLOCK else "255.255.0.0")
        else:
            config |= {"openflow_ports": [1, 2, 3, 4], "native_ports": []}
        return {"datapath_id": f"00:00:{mac}", "profile": self.profile, "config": config}

    def _hosts(self) -> Iterator[tuple[str, dict[str, str]]]:
        for number in range(1, self.switches + 1):
            block, place = _place(number)
            for which in range(self.hosts_per_switch):
                byte = 2 * block + which
                yield (
                    self.host(number, which),
                    {"mac": f"02:00:00:00:{byte:02x}:{place:02x}", "ip": f"10.0.{byte}.{place}/16"},
                )

    def _links(self) -> Iterator[dict[str, object]]:
        for number in range(1, self.switches + 1):
            for which in range(self.hosts_per_switch):
                yield {"a": self.host(number, which), "b": f"{self.switch(number)}:{which + 1}"}
        for number in range(1, self.switches + 1):
            here = f"{self.switch(number)}:{self.next_port}"
            there = f"{self.switch(number + 1)}:{self.next_port + 1}"
            yield {"a": here, "b": there, "one_way": self.one_way}


def _place(number: int) -> tuple[int, int]:
    """Return the block of addresses that a switch belongs to, from 0, and its place there, from 1."""
    block, place = divmod(number - 1, _BLOCK)
    return block, place + 1
