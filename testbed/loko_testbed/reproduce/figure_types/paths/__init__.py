"""Admitted flows on paths of every length at the same time: their delays compared with their guarantees."""
