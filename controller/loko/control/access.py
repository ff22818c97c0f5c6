"""Access list of the OpenFlow port: from where, and by which certificate, each switch may connect.

Pure, and of the standard library alone: the OpenFlow application loads it, in whichever interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, Self

Network = IPv4Network | IPv6Network
_LOOPBACK: Final = frozenset({ip_address("127.0.0.1"), ip_address("::1")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The other end of a connection."""

    address: str
    port: int
    is_local: bool
    """Whether the connection comes from this machine or, in a network namespace, from this namespace."""
    certificate: tuple[str, ...] | None = None
    """The names in its certificate, which has been verified; None for a connection without TLS."""

    @classmethod
    def of(cls, far: tuple[object, ...], near: tuple[object, ...]) -> Self:
        """Return the peer of a TCP connection with these socket addresses."""
        address = _address(str(far[0]))
        is_local = address in _LOOPBACK or address == _address(str(near[0]))
        return cls(address=str(address), port=int(str(far[1])), is_local=is_local)

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def to_json(self) -> dict[str, object]:
        """Return the peer as JSON values."""
        return asdict(self)

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the peer of such values."""
        names = values["certificate"]
        return cls(**{**values, "certificate": None if names is None else tuple(names)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchAccess:
    """From where one switch may connect."""

    name: str
    networks: tuple[Network, ...] | None
    """Its addresses; None for any."""
    is_local: bool = False
    """Whether it may also connect from this machine."""
    certificate: str | None = None
    """The name that its certificate must have. With one, it must use TLS."""

    def admits(self, address: str, *, is_local: bool) -> bool:
        """Return whether the switch may connect from an address, which may be of this machine."""
        if self.networks is None or (self.is_local and is_local):
            return True
        return any(_address(address) in network for network in self.networks)


class AccessList:
    """From where each switch of a lab may connect, by its datapath identifier."""

    def __init__(self, switches: Mapping[int, SwitchAccess]) -> None:
        self._switches = dict(switches)

    def __len__(self) -> int:
        return len(self._switches)

    def name(self, datapath_id: int) -> str | None:
        """Return the switch with a datapath identifier; None if there is none."""
        access = self._switches.get(datapath_id)
        return None if access is None else access.name

    def switches_at(self, address: str, *, is_local: bool) -> int:
        """Return how many switches may connect from an address, which may be of this machine."""
        return sum(access.admits(address, is_local=is_local) for access in self._switches.values())

    def refusal(self, datapath_id: int, peer: Peer) -> str | None:
        """Return why a peer may not be the switch with this identifier; None if it may."""
        access = self._switches.get(datapath_id)
        if access is None:
            return "no switch of the lab has this id"
        if not access.admits(peer.address, is_local=peer.is_local):
            return f"{access.name} may not connect from there: see `addresses` of the lab's file"
        if access.certificate is None:
            return None
        if peer.certificate is None:
            return f"{access.name} must connect by TLS: see `certificate` of the lab's file"
        if access.certificate not in peer.certificate:
            return f"its certificate is not that of {access.name}: see `certificate` of the lab's file"
        return None

    @property
    def open_to_all(self) -> tuple[str, ...]:
        """The switches that may connect from any address without a certificate."""
        return tuple(
            access.name
            for access in self._switches.values()
            if access.networks is None and access.certificate is None
        )

    def to_json(self) -> list[dict[str, object]]:
        """Return the list as JSON values."""
        return [
            {
                "datapath_id": datapath_id,
                **asdict(access),
                "networks": None if access.networks is None else list(map(str, access.networks)),
            }
            for datapath_id, access in self._switches.items()
        ]

    @classmethod
    def of_json(cls, switches: Sequence[Mapping[str, Any]]) -> Self:
        """Return the list of such values."""
        return cls(
            {
                values["datapath_id"]: SwitchAccess(
                    name=values["name"],
                    networks=None if (given := values["networks"]) is None else tuple(map(ip_network, given)),
                    is_local=values["is_local"],
                    certificate=values["certificate"],
                )
                for values in switches
            }
        )


@lru_cache(maxsize=4096)
def _address(text: str) -> IPv4Address | IPv6Address:
    """Return an address as it is compared: an IPv4 address that IPv6 sockets show as such is one."""
    address = ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
