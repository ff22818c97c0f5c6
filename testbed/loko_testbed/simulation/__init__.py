"""Runs in virtual time: traffic, the network of a lab, packet records, and the worst-case search."""
