"""What live results from this machine are worth, and what would make them better.

`facts` is what is known of a machine, `probes` finds it out, `judgement` says what it means (without side
effects, so tests can judge machines of every kind), `commands` shows it.
"""
