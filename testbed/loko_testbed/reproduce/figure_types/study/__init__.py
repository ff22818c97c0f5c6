"""Studies of this project itself, such as how admission grows with the network."""
