"""What may be allocated of a switch, over frame sizes and table sizes (figure 14 of the Loko paper)."""
