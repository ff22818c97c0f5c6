"""What live results from this machine are worth, and what would make them better.

`facts` are what is known of a machine, `probes` finds them out, `judgement` says what they mean (it touches
nothing, so machines of every kind can be judged in tests), `commands` shows it.
"""
