"""Replays of the papers: figure documents, claims, plots, report and archive."""
