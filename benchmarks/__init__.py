"""What the testbed costs and how exact it is, measured on this machine: ``make bench``."""
