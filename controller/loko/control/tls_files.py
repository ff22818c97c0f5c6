"""The controller's files for TLS with switches."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The PEM files of a controller, by their paths."""

    certificate: str
    """Its certificate, and those between that and the authority's."""
    key: str
    authority: str
    """The certificate of the authority that has signed those of the switches."""

    def context(self) -> ssl.SSLContext:
        """Return the context of connections. Raises `OSError` (which `ssl.SSLError` is) for unfit files."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key, password="")  # else OpenSSL asks for one
        context.load_verify_locations(self.authority)
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = 0  # switches do not resume sessions
        return context
