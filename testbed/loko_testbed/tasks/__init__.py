"""Tasks and their results on disk: executors, files, progress, provenance."""
