"""Attacks on admitted sets: the longest delay over its guarantee, by the adversary and by chance."""
