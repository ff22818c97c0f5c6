"""Measure the testbed's speed, memory and accuracy on this machine: ``make bench``."""
