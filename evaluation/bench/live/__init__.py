"""A bench in real time: instruments of this machine around a switch, emulated, software or hardware.

`pacing` sends at exact instants, `interruptions` finds what the host spoilt, and `live_device` makes a
`Device` of them and of `evaluation.instruments`. `open_device` builds or finds the switch that an inventory
describes, and `self_test` looks whether it is wired so.
"""
