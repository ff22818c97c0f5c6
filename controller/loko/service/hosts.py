"""The names by which clients may address the service: given by its operator, or impossible to fake.

A page of another site may let its own name resolve to this machine (DNS rebinding). Its requests then come
from here and are of the same origin, but they carry that name in their `Host`. A numeric address is no name,
so it need only be the one that the connection has reached.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from loko.document import InputError

_NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})")
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|(?:[a-z0-9._~!$&'()*+,;=-]|%[0-9a-f]{2})+)(?::[0-9]*)?", re.IGNORECASE
)
"""A host and perhaps a port (RFC 3986, 3.2). A zone, as in `fe80::1%eth0`, has no place in it."""


def is_authority(host: bytes) -> bool:
    """Return whether a `Host` has the form of one, whether or not it names this service."""
    return _AUTHORITY.fullmatch(host.decode("latin-1")) is not None


class KnownHosts:
    """The names of this service. Ports do not matter: a tunnel may change them."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        """`bound` is the address or name that the service listens on. Raises `InputError`."""
        self._names = {"localhost", _canonical(bound), *map(_given, allowed)}

    def know(self, host: bytes, reached: str) -> bool:
        """Return whether a `Host` names this service, on a connection that reached the address `reached`."""
        match = _AUTHORITY.fullmatch(host.decode("latin-1"))
        if match is None or "%" in match["host"]:
            return False
        name = _canonical(match["host"])
        return name in self._names or _is_loopback(name) or name == _canonical(reached)


def _given(text: str) -> str:
    name = _canonical(text.lower())
    if not (_is_address(name) or _NAME.fullmatch(name)):
        raise InputError(f"--allow-host '{text}' is not a host; give a name or an address, without a port")
    return name


@lru_cache(maxsize=4096)
def _canonical(host: str) -> str:
    """Return a name without the root's dot, or an address in its shortest form, without brackets."""
    name = host.lower().removesuffix(".").removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def _is_loopback(name: str) -> bool:
    return _is_address(name) and ipaddress.ip_address(name).is_loopback
