"""Replay the papers' evaluation: run, capture, analyse, draw, report.

``lab -> traffic -> records -> figure -> report``. Virtual, live and hardware runs yield the same records
(`evaluation.runner.RunRecords`), so each analysis is written once.
"""
