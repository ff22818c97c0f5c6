"""How close emulated switches come to the device's profile, at every corner of the paper's Table 1.

One bench, a switch between two hosts, is built from the firmware emulator (virtual and live), from the twin
and from plain Mininet with limited links. All get the same tables and the same frames.

- `corners`: the corners, and their tables as messages. `expected`: what the profile says of each frame.
- `systems`: the four kinds of switch. `trial`: what is sent through one at one corner, and the errors.
- `campaign`: everything in one run, resumable. `figures`: its pictures.
"""
