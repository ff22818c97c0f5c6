"""A fleet of emulated boards that measures somebody else's controller, in the terms of RFC 8456.

`board` is one switch of the fleet, `exercise` what is done with all of them, `results` what came of it; pure.
"""
