"""Replay points: send what was admitted through a lab, run after run, and keep the records.

A figure type describes its points (`point.Point`) and judges the records kept of them. All points are
carried out in the same way. In virtual time, runs are independent tasks that processes or clusters share.
In real time, they follow one another, in the same lab for as long as it fits.
"""
