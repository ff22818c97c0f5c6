"""The commands `loko model` and `loko plan`: parameters in, tables, JSON or CSV out."""
