"""Labs in containers: containerlab wires them, the rest is as in any live lab (docs/containerlab.md).

`topology` writes a lab as containerlab's file (pure), `deployment` has containerlab build and remove it,
`network` and `boards` find hosts, cables and boards in the containers.
"""
