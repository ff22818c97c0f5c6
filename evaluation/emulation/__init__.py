"""Emulated boards of a lab in real time, without root: what `loko serve --emulate` runs beside the service.

boards      each board alone: control plane only, each with its own connection and time
cabled      boards, cables and hosts in one virtual time; pure
senders     what a host may send of an admitted flow, at its worst; pure
taps        what of it arrived, and when; pure
traffic     `cabled` at the pace of the clock, told by the service which flows there are
"""
