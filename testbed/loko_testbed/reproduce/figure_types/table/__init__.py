"""Tables of values that the controller computes for a lab's switches."""
