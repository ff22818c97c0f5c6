"""Delay and loss of flows through a lab over a multiplier of what they send (section 6 of the Loko paper)."""
