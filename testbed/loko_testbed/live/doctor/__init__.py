"""Diagnoses whether live results from this machine can be trusted, and what would make them better.

`facts` is what is known of a machine, `probes` finds it out, `judgement` says what it means (without side
effects, so tests can judge machines of every kind), `commands` shows it.
"""
