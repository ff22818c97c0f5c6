"""A fleet of emulated boards that measures somebody else's controller, in the terms of RFC 8456.

`board` is one switch of the fleet, `exercise` says what is done with all of them, and `results` has what was
measured (without side effects).
"""
