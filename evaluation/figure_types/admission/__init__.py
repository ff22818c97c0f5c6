"""How many flows an admission scheme accepts on paths of a ring, computed run by run; nothing is sent."""
