"""Figures of the predictability study: processing times, priority queueing, throughput, and the verdict."""
