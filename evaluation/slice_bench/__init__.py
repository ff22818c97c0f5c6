"""Measures what the slices of a switch's port really do, from outside, and compares that with what was configured."""
