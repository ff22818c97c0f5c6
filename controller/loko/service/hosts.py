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

_Host = ipaddress.IPv4Address | ipaddress.IPv6Address | str
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
        self._hosts = {"localhost", _host(bound), *map(_given, allowed)}

    def know(self, host: bytes, reached: str) -> bool:
        """Return whether a `Host` names this service, on a connection that reached the address `reached`."""
        match = _AUTHORITY.fullmatch(host.decode("latin-1"))
        if match is None or "%" in match["host"]:
            return False
        named = _host(match["host"])
        is_loopback = not isinstance(named, str) and named.is_loopback
        return is_loopback or named in self._hosts or named == _host(reached)


def _given(text: str) -> _Host:
    host = _host(text)
    if isinstance(host, str) and not _NAME.fullmatch(host):
        raise InputError(f"--allow-host '{text}' is not a host; give a name or an address, without a port")
    return host


@lru_cache(maxsize=4096)
def _host(text: str) -> _Host:
    """Return an address, without brackets and zone, or a name, without the root's dot."""
    name = text.lower().removesuffix(".").removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    return getattr(address, "ipv4_mapped", None) or address
