"""Effects of the schedulers of sliced ports on bursts and messages (the slicing paper, section IV-A)."""
