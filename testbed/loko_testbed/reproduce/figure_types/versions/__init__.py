"""Guarantees of a lab's boards in sessions of OpenFlow 1.0 and 1.3."""
