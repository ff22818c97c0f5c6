"""Comparisons: what several systems accept on the same labs, and what happens if a sender misbehaves."""
