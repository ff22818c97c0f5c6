"""A bench in real time: instruments of this machine around a switch, emulated, software or hardware.

`packet_tap` stamps, `pacing` sends at exact instants, `controller_endpoint` is the switch's controller,
`interruptions` finds what the host spoilt, `live_device` makes a `Device` of them, and `open_device` builds or finds
the switch that an inventory describes.
"""
