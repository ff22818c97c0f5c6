"""Attacks on admitted sets: the largest ratio of delay to guarantee, by worst-case search and by chance."""
