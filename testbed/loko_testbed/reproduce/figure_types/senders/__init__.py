"""Inference of senders from one figure of the paper, and their predictions for the others."""
