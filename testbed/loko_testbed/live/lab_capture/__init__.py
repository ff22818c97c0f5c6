"""Captures of a live lab, as pcapng: what passes its cables and its OpenFlow sessions."""
