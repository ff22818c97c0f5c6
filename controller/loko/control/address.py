"""Addresses with a TCP port, as options state them: `127.0.0.1:6633`, `[::1]:6633`, `localhost:6633`."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final, NamedTuple, Self

from loko.document import InputError

_EXAMPLE: Final = "127.0.0.1:6633 or [::1]:6633"
_OTHER_KINDS: Final = re.compile(r"(ssl|tls|unix|ptcp|pssl|punix|https?):")
"""How other programs write connections that are none of TCP alone."""
_WRITTEN: Final = re.compile(r"(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:\[\]/]+)):(?P<port>[0-9]{1,5})")


class Address(NamedTuple):
    """A host, by name or IP address, and a TCP port."""

    host: str
    """Without brackets."""
    port: int

    @classmethod
    def parse(cls, text: str, option: str, *, any_port: bool = False) -> Self:
        """Read the value of an option; with `any_port` also port 0. Raises `InputError` in one line."""
        match = _WRITTEN.fullmatch(text.removeprefix("tcp:"))
        if match is None:
            if kind := _OTHER_KINDS.match(text):
                raise InputError(
                    f"{option} '{text}': {kind[1]} is not supported; give one such as {_EXAMPLE}"
                )
            raise InputError(f"{option} '{text}' is not an address and a port such as {_EXAMPLE}")
        host, port = match["ipv6"] if match["host"] is None else match["host"], int(match["port"])
        if not (0 if any_port else 1) <= port <= 65535:
            raise InputError(f"{option} '{text}': {port} is no TCP port; give 1 to 65535")
        if match["host"] is None:
            try:
                IPv6Address(host)
            except ValueError:
                raise InputError(f"{option} '{text}': {host} is no IPv6 address, such as ::1") from None
        return cls(host, port)

    @property
    def is_ipv6(self) -> bool:
        """Whether the host is an address of IPv6."""
        return ":" in self.host

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"
