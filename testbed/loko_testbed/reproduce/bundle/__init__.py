"""Packs a folder of results into one archive that others can verify."""
