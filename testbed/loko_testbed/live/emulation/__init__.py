"""Emulated switches of a lab in real time, without root: what `loko serve --emulate` runs beside the service.

boards      each board alone: control plane only, each with its own connection and time
cabled      boards and other switches, cables and hosts in one virtual time; pure
traffic     `cabled` at the pace of the clock, told by the service which flows there are
"""
