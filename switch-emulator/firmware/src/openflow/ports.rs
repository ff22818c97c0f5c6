//! State of the ports: links, configuration, counters.

use crate::port::{HardwareCounters, PortMask, PortNumber, PORTS};
use crate::random::RandomBytes;

/// Bits of a port's configuration (`ofp_port_config`).
pub(super) mod port_config {
    pub(in super::super) const DOWN: u32 = 1;
    pub(in super::super) const NO_RECEIVE: u32 = 1 << 2;
    pub(in super::super) const NO_FLOOD: u32 = 1 << 4;
    pub(in super::super) const NO_FORWARD: u32 = 1 << 5;
    pub(in super::super) const NO_PACKET_IN: u32 = 1 << 6;
    pub(in super::super) const ALL: u32 = 0x7f;
    /// Those that 1.3 has.
    pub(in super::super) const ALL_OF_13: u32 = DOWN | NO_RECEIVE | NO_FORWARD | NO_PACKET_IN;
}

/// Ports as the agent knows them.
#[derive(Debug)]
pub(super) struct AgentPorts {
    /// Configuration set by `PORT_MOD`; by the specification only.
    pub(super) config: [u32; PORTS],
    pub(super) link_up: PortMask,
    pub(super) link_seen: PortMask,
    addresses: RandomBytes,
    /// Frames that the CPU received by each port.
    pub(super) received: [u64; PORTS],
    /// Hardware counters as far as the firmware has read them.
    pub(super) totals: [HardwareCounters; PORTS],
    /// Hardware counters as far as read in OpenFlow 1.3 sessions.
    pub(super) totals13: [HardwareCounters; PORTS],
    /// Port whose counters are read next; from 0.
    pub(super) counted: usize,
}

impl AgentPorts {
    pub(super) const fn new() -> Self {
        const NONE: HardwareCounters = HardwareCounters {
            received_bytes: 0,
            sent_bytes: 0,
            received_dropped: 0,
        };
        Self {
            config: [0; PORTS],
            link_up: PortMask::all(),
            link_seen: PortMask::all(),
            addresses: RandomBytes::new(),
            received: [0; PORTS],
            totals: [NONE; PORTS],
            totals13: [NONE; PORTS],
            counted: 0,
        }
    }

    pub(super) fn set_link(&mut self, port: PortNumber, up: bool) {
        let others = self.link_up.without(port);
        self.link_up = if up { others.with(port) } else { others };
    }

    /// Returns the ports of `ports` whose configuration has none of `bits`.
    pub(super) fn without(&self, ports: PortMask, bits: u32) -> PortMask {
        if self.config == [0; PORTS] {
            return ports; // as always on the board
        }
        ports
            .iter()
            .filter(|port| self.config[port.index()] & bits == 0)
            .collect()
    }

    /// Changes a port's configuration where `mask` has bits.
    pub(super) fn configure(&mut self, port: PortNumber, config: u32, mask: u32) {
        let held = &mut self.config[port.index()];
        *held = *held & !mask | config & mask;
    }

    /// Returns a random address (quirk 19).
    pub(super) fn made_up_address(&mut self) -> [u8; 6] {
        core::array::from_fn(|_| self.addresses.next_byte())
    }
}
