"""The controller: Loko's tables, set up in switches over OpenFlow 1.0."""
