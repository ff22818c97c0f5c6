"""The allocation of a switch for each frame size and table size (figure 14 of the Loko paper)."""
