"""Systems that guarantee latency, deployed on a lab one after another (figures 3 and 15 of the Loko paper)."""
