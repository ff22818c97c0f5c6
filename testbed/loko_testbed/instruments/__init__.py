"""The instruments that both labs and bench use. They know neither of them.

`packet_tap` stamps what passes an interface. `controller_endpoint` is a switch's controller in real time,
`virtual_session` one in virtual time. `cable_probe` sends frames with numbers (`numbered_frame`) to see where
a cable leads. `numbered_table` has what flow tables for such frames share.
"""
