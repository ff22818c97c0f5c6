"""Step 3 online: a service that admits flows, keeps them in the switches, and survives a kill.

`flow_manager` is the pure core; `store` keeps its promises on disk; `loko.control.relay` carries bytes to
and from the OpenFlow framework's process; `api` is the REST interface; `run` joins them.
"""
