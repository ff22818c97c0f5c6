"""Attacks on admitted sets: the largest ratio of delay to guarantee, by an adversary and by chance."""
