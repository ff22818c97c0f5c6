"""What the schedulers of sliced ports do to a transfer over TCP (the slicing paper, sections V to VII)."""
