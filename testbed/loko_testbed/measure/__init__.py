"""Measurements of switches, of their slices, and of controllers."""
