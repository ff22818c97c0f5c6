"""Processing time of the integrated switch alone (section 3.4.1, figure 10d)."""
