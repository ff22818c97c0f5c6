"""A bench in real time: instruments of this machine around a switch, emulated, software or hardware.

`packet_tap` stamps, `pacing` sends at exact instants, `controller_endpoint` is the switch's controller,
`interruptions` finds what the host spoilt, and `live_device` makes a `Device` of them. `open_device` builds
or finds the switch that an inventory describes, and `self_test` looks whether it is wired so.
"""
