"""Worst-case search: finds the releases that hurt guarantees most, in virtual time (docs/evidence.md).

`admitted_set` is what was admitted on a lab, `release` when its hosts send. `delivery` transmits that through
the simulator and judges every packet, `search` looks for the worst pattern, `random_cases` draws sets
from a seed. Everything that is sent keeps to the admitted token buckets.
"""
