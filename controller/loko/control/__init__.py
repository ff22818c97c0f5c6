"""The controller: flow tables, kept in switches over OpenFlow 1.0.

`driver` is the pure core for one switch, and `wire` has its messages. `shim` is the OpenFlow framework's
application, in a process of its own; `relay` talks to it, and `switchboard` does so by the switches' names.
Two users build on this: `fixed_tables`, which keeps the tables of a planned set of flows, and the service,
`loko.service`.
"""
