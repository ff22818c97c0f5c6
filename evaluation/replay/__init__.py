"""The replay of points: what was admitted is sent through a lab, run after run, and the records are kept.

A kind of figure describes its points (`point.Point`) and judges what is kept of them. How they are
carried out is the same for all: in virtual time by tasks that depend on nothing else, so that processes and
clusters share them; in real time one after the other, in one lab as long as it serves.
"""
