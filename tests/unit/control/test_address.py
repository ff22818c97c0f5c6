"""Addresses with a TCP port, as every option takes them."""

from __future__ import annotations

import pytest

from loko.control.address import Address
from loko.document import InputError


@pytest.mark.parametrize(
    ("text", "address", "written"),
    [
        ("127.0.0.1:6633", ("127.0.0.1", 6633), "127.0.0.1:6633"),
        ("tcp:127.0.0.1:6633", ("127.0.0.1", 6633), "127.0.0.1:6633"),
        ("[::1]:6633", ("::1", 6633), "[::1]:6633"),
        ("tcp:[2001:db8::1]:80", ("2001:db8::1", 80), "[2001:db8::1]:80"),
        ("localhost:6633", ("localhost", 6633), "localhost:6633"),
    ],
)
def test_addresses_are_read_and_written(text: str, address: tuple[str, int], written: str) -> None:
    assert Address.parse(text, "--listen") == address
    assert str(Address.parse(text, "--listen")) == written


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("6633", "--listen '6633' is not an address and a port such as 127.0.0.1:6633 or [::1]:6633"),
        ("tcp:6633", "--listen 'tcp:6633' is not an address and a port"),
        ("::1:6633", "is not an address and a port"),
        ("[::1]", "is not an address and a port"),
        ("[here]:6633", "here is no IPv6 address, such as ::1"),
        ("127.0.0.1:0", "0 is no TCP port; give 1 to 65535"),
        ("127.0.0.1:65536", "65536 is no TCP port"),
        ("ssl:127.0.0.1:6633", "ssl is not supported; give one such as 127.0.0.1:6633"),
        ("http://127.0.0.1:8080", "http is not supported"),
        ("127.0.0.1:6633/x", "is not an address and a port"),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        Address.parse(text, "--listen")
    assert says in str(error.value)
    assert "\n" not in str(error.value)
