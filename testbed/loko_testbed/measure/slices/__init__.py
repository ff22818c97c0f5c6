"""Measures from outside what the slices of a port really do, and compares that with what was configured."""
