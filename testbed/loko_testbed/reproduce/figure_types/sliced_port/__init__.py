"""Every property of every queue of a sliced port, beside its configuration and the model."""
