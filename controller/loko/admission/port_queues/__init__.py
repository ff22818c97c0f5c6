"""Guarantees for switches with a queue for each priority and port (docs/port-queues.md).

Loko's own model is one server for all ports of a switch. Here every port is a server of its own, and the
flows' frames wait in its highest queue.
"""

from loko.admission.port_queues.admission import PortAdmission
from loko.admission.port_queues.device import PortDevice, most_classes, port_device, unfit

__all__ = ["PortAdmission", "PortDevice", "most_classes", "port_device", "unfit"]
