"""The program `loko`: one module per command, each imported only when it is called."""
