"""The service curve of a switch in a scenario, with arrival curves (sections 4 and 6 of the Loko paper)."""
