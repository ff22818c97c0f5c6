"""Host names by which the service may be asked."""

from __future__ import annotations

import pytest

from loko.document import InputError
from loko.service.hosts import KnownHosts


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8080", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:8080"),
        *("127.8.9.1:80", "[::1]", "[::1]:8080", "[0:0::0:1]:8080", "[::ffff:127.0.0.1]:8080"),
    ],
)
def test_loopback_is_known(host: str) -> None:
    assert KnownHosts("127.0.0.1").know(host.encode(), "127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:8080", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8080", ""),
        *("localhost@evil.example", "evil.example#localhost", "localhost, evil.example", ":8080", "[::1"),
        *(
            "localhost:8080:8080",
            "localhost:eighty",
            "192.0.2.7:8080",
            "[2001:db8::1]:8080",
            "[evil.example]",
        ),
        *("\xa0localhost", "127.1", "2130706433"),
    ],
)
def test_any_other_is_not(host: str) -> None:
    assert not KnownHosts("127.0.0.1").know(host.encode("latin-1"), "127.0.0.1")


def test_the_bound_address_and_what_is_allowed_are_known() -> None:
    hosts = KnownHosts("192.0.2.7", ["loko.example", "LAB.", "2001:db8::1"])
    for known in (b"192.0.2.7:8080", b"Loko.Example:80", b"lab", b"[2001:db8:0::1]:8080"):
        assert hosts.know(known, "192.0.2.7"), known
    assert not hosts.know(b"192.0.2.8", "192.0.2.7")
    assert not hosts.know(b"www.loko.example", "192.0.2.7")


def test_an_address_is_known_if_the_connection_has_reached_it() -> None:
    """`0.0.0.0` listens on addresses that nobody has named, so those are accepted. Names are not."""
    hosts = KnownHosts("0.0.0.0")
    assert hosts.know(b"192.0.2.7:8080", "192.0.2.7")
    assert not hosts.know(b"192.0.2.8:8080", "192.0.2.7")
    assert hosts.know(b"[2001:db8::1]", "2001:db8:0::1")
    assert not hosts.know(b"evil.example", "192.0.2.7")


@pytest.mark.parametrize("given", ["", "http://loko.example", "loko.example:8080", "a b", "-x", "a..b", "*"])
def test_what_is_no_host_cannot_be_allowed(given: str) -> None:
    with pytest.raises(InputError, match="is not a host; give a name or an address, without a port"):
        KnownHosts("127.0.0.1", [given])
