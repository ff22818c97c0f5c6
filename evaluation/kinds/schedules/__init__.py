"""Figures of how many flows get slots on random networks (TSSDN, section 5.2)."""
