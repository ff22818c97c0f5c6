"""Numbers of flows that get slots on random networks (TSSDN, section 5.2)."""
