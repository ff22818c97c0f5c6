"""Device profiles for the Loko testbed, to copy (docs/plug-ins.md): the TOML files beside this one."""
