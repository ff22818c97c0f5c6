"""Numbers of flows that admission schemes accept on paths of a ring, run by run; nothing is sent."""
