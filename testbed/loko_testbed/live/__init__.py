"""Runs in real time: a lab of network namespaces, emulated boards, mgen, tcpdump. Linux, root.

Everything that a run starts lives in one *confined process tree* (`loko_testbed.live.confinement`) with PID,
network and mount namespaces of its own. When its first process ends, however that happens, the kernel ends
all others and removes every interface, so nothing survives and nothing has to be cleaned up.

- `confinement`: start the tree, talk to its first process. `exclusion`: one lab at a time.
  `realtime_limit`: what the emulator changed for the whole machine is restored.
- `inside`: that first process; it answers `messages`. `session`: the lab that it runs.
- `building`: starts the tree, and before it what is outside. `afterwards`: removes that when the tree ends.
- `network`: hosts and cables by Mininet; `containerlab`: in containers. `routes`: by which interface a host
  sends. `control_network`: cables from the boards to the controller. `cards`: network cards that are cabled
  to real boards.
- `switches`: what is in the place of the lab's switches. `real_boards`: those that are real, whose cables
  `board_wiring` examines.
- `boards`: the emulator. `coarse`: Open vSwitch instead (`openvswitch`), behind the shared queue of the
  coarse `stand_in`, or with Mininet's limited links (`mininet_link`).
- `carriage`: one run of traffic, by `shaping` (tc tbf), `generator` (mgen), `capture` (tcpdump).
- `stalls`: was it the host's fault that a packet was late?
- `runner`: `LiveRunner`, the door for the evaluation. `background`: a lab that stays up.
"""
