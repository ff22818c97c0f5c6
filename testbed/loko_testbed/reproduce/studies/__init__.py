"""Studies of this project itself: one module for each, which defines a `STUDY`.

The document of a study, `labs/studies/experiments/NAME.yml`, is a figure of the type `study`; its page is
made from its result (`loko_testbed.reproduce.studies.pages`).
"""
