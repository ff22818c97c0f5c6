"""Measured maximum throughput compared with equations 5 and 6, for the cases of section 3.4.2."""
