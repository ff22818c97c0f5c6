"""A bench in real time: this machine's instruments around a switch, emulated, software or hardware.

`pacing` sends at exact instants, `interruptions` finds the frames that a stalled host spoilt, and
`live_device` makes a `Device` of these and of `loko_testbed.instruments`. `open_device` builds or finds the
switch that an inventory describes, and `self_test` checks its wiring.
"""
