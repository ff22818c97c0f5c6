"""Figures of what hosts send in time slots: its end-to-end delay, and how well slots are kept."""
