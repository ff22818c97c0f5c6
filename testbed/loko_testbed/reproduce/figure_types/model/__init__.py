"""Curves and maps that the model gives for a switch in a scenario (sections 4 to 6 of the Loko paper)."""
