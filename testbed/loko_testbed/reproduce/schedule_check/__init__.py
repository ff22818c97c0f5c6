"""Tries to refute schedules, by arithmetic and by a replay in the simulator.

It shares no code with what makes schedules (`loko.schedule`): both read the same documents, and neither
imports the other (`tests/unit/reproduce/test_schedule_check.py`). A schedule is believed when nothing here
refutes it.
"""
