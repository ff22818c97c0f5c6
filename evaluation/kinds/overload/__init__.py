"""Output over input rate, up to and beyond the maximum throughput."""
