"""Step 1 of Loko for any switch (section 3): from measurements of a black box to its profile.

`cases` says what is varied, `device` is what a bench can do with a switch, `equations` turns the instants of
taps into times of the switch, and the procedures (`data_plane`, ...) put these together. `cost_model` finds
the numbers of a profile in their samples; nothing that measures depends on it.
"""
