"""Traffic of admitted flows through a lab, replayed point by point, and judged by the guarantees."""
