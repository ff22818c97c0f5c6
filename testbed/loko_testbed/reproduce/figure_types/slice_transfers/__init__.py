"""Effects of the schedulers of sliced ports on a TCP transfer (the slicing paper, sections V to VII)."""
