"""Captures of runs in virtual time, as pcapng for Wireshark and others."""
