"""Figures of a single switch on the bench: samples of a procedure, evaluated (step 1 of the Loko paper)."""
