"""Measure how close emulated switches come to the device's profile, at every corner of the paper's Table 1.

The bench is a switch between two hosts. The switch is the firmware emulator (virtual and live), the stand-in,
or plain Mininet with limited links. All get the same tables and the same frames.

- `corners`: the corners, and their tables as messages. `expected`: each frame's departure by the profile.
- `systems`: the four kinds of switch. `trial`: measures one of them at one corner.
- `campaign`: measures everything, resumably. `figures`: draws the results.
"""
