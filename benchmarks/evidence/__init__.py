"""The evidence: a thousand million simulated packets of random admitted sets, none lost, none late (docs/evidence.md)."""
