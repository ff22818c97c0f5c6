"""Figures of what hosts send at given times: how late it is at the destination, and how well slots are kept."""
