"""Processing time of messages of the control plane (section 3.2, figures 6 and 7)."""
