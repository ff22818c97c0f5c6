"""Step 1 of Loko for any switch (section 3): from measurements of a black box to its profile.

`cases` says what is varied, `device` is what a bench can do with a switch, `equations` turns the instants of
taps into times of the switch, the procedures (`data_plane`, ...) put these together, and `estimate` finds
the numbers of a profile in their samples.
"""
