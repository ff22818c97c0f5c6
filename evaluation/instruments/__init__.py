"""What both labs and bench look and act with in real time: below them, so that neither knows the other.

`packet_tap` stamps what passes an interface, `controller_endpoint` is a switch's controller, and
`cable_probe` sends frames with numbers (`numbered_frame`) to see where a cable leads.
"""
