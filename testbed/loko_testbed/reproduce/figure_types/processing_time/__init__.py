"""Processing time of single frames and the resulting throughput, by one dimension of Table 1."""
