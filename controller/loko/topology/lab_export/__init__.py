"""Labs in the formats of other programs."""
