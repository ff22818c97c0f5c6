"""The controller: flow tables, kept in switches over OpenFlow 1.0.

`driver` is the pure core for one switch, `wire` its messages; `shim` is the application of the OpenFlow
framework, a process of its own, to which `relay` talks, and `switchboard` by the switches' names. On it stand
`fixed_tables`, which keeps the tables of a planned set of flows, and the service, `loko.serve`.
"""
