"""Labs: their files, networks and cabling, the flows requested of them, importers and JSON Schemas."""
