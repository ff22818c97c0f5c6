"""Which senders a figure of the paper speaks for, and what these predict of the others."""
