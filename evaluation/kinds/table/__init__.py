"""Tables of what the controller computes of a lab's switches."""
