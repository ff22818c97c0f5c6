"""Failures in virtual time: cables are pulled while flows send, and the flows move as their plan says.

`protected_lab` is a plan's network with its tables and copies, and runs it with a failure at one instant.
`verdict` compares each packet with what the plan states for that failure.
"""
