"""The attack on guarantees: finds the release patterns that hurt most, in virtual time (docs/evidence.md).

`admitted_set` is what was admitted on a lab, `release` when its hosts send. `carriage` carries that through
the simulator and judges every packet, `search` looks for the worst pattern, `random_cases` draws sets
from a seed. Everything that is sent keeps to the admitted token buckets; `conformance` checks it.
"""
