"""What the schedulers of sliced ports do to bursts and messages (the slicing paper, section IV-A)."""
