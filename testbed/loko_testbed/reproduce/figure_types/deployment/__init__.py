"""Systems that guarantee latency, deployed on a lab one after another (Loko paper, figures 3 and 15)."""
