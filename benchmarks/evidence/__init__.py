"""The evidence: random admitted sets, every packet judged (docs/evidence.md)."""
