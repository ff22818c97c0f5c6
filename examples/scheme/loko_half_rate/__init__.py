"""An admission scheme for the Loko testbed, to copy (docs/plug-ins.md)."""
