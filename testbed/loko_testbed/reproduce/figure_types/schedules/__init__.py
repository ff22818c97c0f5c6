"""Schedules on random networks: how many flows get slots, and how long that takes (TSSDN, section 5.2)."""
