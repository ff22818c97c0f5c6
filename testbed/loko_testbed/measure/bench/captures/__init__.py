"""Reads captures made elsewhere: the frames that any two taps saw on both sides of a switch.

`files` tells the formats apart, `pcap` and `erf` read them record by record, `fingerprint` recognises a frame
whose headers were rewritten, `pairing` finds what became of each one, and `analysis` evaluates that (equation
4).
"""
