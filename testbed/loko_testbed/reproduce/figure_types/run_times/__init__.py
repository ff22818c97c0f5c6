"""Figures of how long schedules take to be computed on this machine (TSSDN, section 5.2.2)."""
