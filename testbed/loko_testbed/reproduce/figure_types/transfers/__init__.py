"""TCP transfers through sliced ports, simulated and by iperf3 (the slicing paper, sections V to VII)."""
