"""Loko: predictable latency on low-cost switches (CoNEXT 2019).

The core is pure: no I/O besides reading profiles, labs and flow files, no clock, no threads. Only
`loko.controller` talks to switches. Rates are in bit/s, sizes in bytes, times in ns; names carry the unit.
"""
