"""By which names the service may be asked: only those that its operator gave it, or that nobody can fake.

A page of another site may let its own name lead to this machine (DNS rebinding). Its requests then come from
here and are of the same origin; but they carry its name in their `Host`. An address in numbers is no name, so
it needs only be the one that the connection has reached.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from loko.document import InputError

_NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})")
_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^\[\]:]+)(?::[0-9]*)?")


class KnownHosts:
    """Whether a request's `Host` is one of this service's. Ports do not matter: a tunnel may change them."""

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        """`bound` is the address or name that the service listens on. Raises `InputError`."""
        self._names = {"localhost", _canonical(bound), *map(_given, allowed)}

    def know(self, host: bytes, reached: str) -> bool:
        """Whether that may be asked here, on a connection that has reached this address."""
        found = _AUTHORITY.fullmatch(host.decode("latin-1").lower())
        if found is None:
            return False
        name = _canonical(found["host"])
        return name in self._names or _is_loopback(name) or name == _canonical(reached)


def _given(text: str) -> str:
    name = _canonical(text.lower())
    if not (_is_address(name) or _NAME.fullmatch(name)):
        raise InputError(f"--allow-host '{text}' is not a host; give a name or an address, without a port")
    return name


@lru_cache(maxsize=4096)
def _canonical(host: str) -> str:
    """A name without the dot of the root; an address in its shortest form, without brackets."""
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
