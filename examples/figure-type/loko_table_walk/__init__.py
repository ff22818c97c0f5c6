"""A figure type for the Loko testbed, to copy (docs/plug-ins.md)."""
