"""The instruments of labs, bench, slices and predictability. They know none of them.

`network_namespace` and `cables` make networks on this machine, with programs that `programs` runs.
`emulator` has the path of `zodiac-fx` and writes its file.
`traffic_control` shapes what leaves an interface, `packet_tap` and `segment_tap` stamp what passes it, and
`arrivals` joins what two taps saw. `controller_endpoint` is a switch's controller in real time,
`virtual_session` one in virtual time. `cable_probe` sends frames with numbers (`numbered_frame`) to see where
a cable leads. `numbered_table` has what flow tables for such frames share.
"""
