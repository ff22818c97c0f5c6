"""Step 1 of Loko for any switch (section 3): from measurements of a black box to its profile.

`cases` says what is varied, `device` is what a bench can do with a switch, and `equations` turns the instants
of taps into times of the switch. `procedures` put these together, each in its file; `part` is what they are
made of, and a `campaign` measures them. `cost_model` finds the numbers of a profile in their samples; nothing
that measures depends on it.
"""
