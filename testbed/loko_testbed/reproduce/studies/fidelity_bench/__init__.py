"""The bench of the study of fidelity: a switch between two hosts, at every corner of the paper's Table 1.

The switch is the firmware emulator (virtual and live), a stand-in, or plain Mininet with limited links. All
get the same tables and the same frames.

- `corners`: the corners, and their tables as messages. `expected`: each frame's departure by the profile.
- `systems`: the kinds of switch. `trial`: measures one of them at one corner.
"""
