"""Replay the papers' evaluation: run, capture, analyse, draw, report.

``lab -> traffic -> records -> figure -> report``. Virtual, live and hardware runs yield the same records
(`loko_testbed.simulation.runner.RunRecords`), so each analysis is written once.
"""

import logging

# Without a home that it can write to, matplotlib warns in each process, and draws all the same.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
