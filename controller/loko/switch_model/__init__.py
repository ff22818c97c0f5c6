"""The model of a switch: device profiles, cost models, service curves and network calculus (section 4)."""
