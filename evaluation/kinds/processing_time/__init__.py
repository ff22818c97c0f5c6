"""Processing time of lone frames and the throughput that follows from it, over one dimension of Table 1."""
