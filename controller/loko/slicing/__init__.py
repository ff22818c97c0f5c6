"""Bandwidth slices of software switches: what will come out, before they are deployed (docs/slicing.md)."""
