"""Delay and loss of flows in a lab by a multiplier of their traffic (section 6 of the Loko paper)."""
