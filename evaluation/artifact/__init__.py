"""A folder of results as an artifact that others can check: one archive, and what verifies it."""
