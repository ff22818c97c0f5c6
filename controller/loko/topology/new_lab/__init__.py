"""Labs of one's own: drawn as a line, ring or tree, or read from another program's file, and written down."""
