"""Output rate by input rate, up to and beyond the maximum throughput."""
