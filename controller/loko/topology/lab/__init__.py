"""A lab: switches, hosts and links, as `labs/NAME/lab.yml` describes them.

`structure` is what the rest of the testbed sees. `file` says how it is written down, `loading` checks it.
"""

from loko.topology.lab.file import is_interface_name, lab_schema
from loko.topology.lab.loading import cabled, lab_of, load_lab, ring_lab, stays_loaded
from loko.topology.lab.structure import Backend, Endpoint, Host, Lab, Link, Switch

__all__ = [
    "Backend",
    "Endpoint",
    "Host",
    "Lab",
    "Link",
    "Switch",
    "cabled",
    "is_interface_name",
    "lab_of",
    "lab_schema",
    "load_lab",
    "ring_lab",
    "stays_loaded",
]
