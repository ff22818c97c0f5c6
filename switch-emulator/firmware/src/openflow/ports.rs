//! State of the ports: links, configuration, counters.

use crate::port::{HardwareCounters, PortMask, PortNumber, PORTS};
use crate::random::RandomBytes;

/// What the agent knows of its ports.
#[derive(Debug)]
pub(super) struct Ports {
    /// What `PORT_MOD` has set; of the specification only.
    pub(super) config: [u32; PORTS],
    pub(super) link_up: PortMask,
    pub(super) link_seen: PortMask,
    addresses: RandomBytes,
    /// Frames that the CPU received by each port.
    pub(super) received: [u64; PORTS],
    /// What the firmware has read of the hardware's counters.
    pub(super) totals: [HardwareCounters; PORTS],
    /// The same while OpenFlow 1.3 is spoken.
    pub(super) totals13: [HardwareCounters; PORTS],
    /// Port whose counters are read next; from 0.
    pub(super) counted: usize,
}

impl Ports {
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

    /// The ports of `ports` whose configuration has none of `bits`.
    pub(super) fn without(&self, ports: PortMask, bits: u32) -> PortMask {
        if self.config == [0; PORTS] {
            return ports; // as always on the board
        }
        ports
            .iter()
            .filter(|port| self.config[port.index()] & bits == 0)
            .collect()
    }

    /// A port's configuration changes where `mask` has bits.
    pub(super) fn configure(&mut self, port: PortNumber, config: u32, mask: u32) {
        let held = &mut self.config[port.index()];
        *held = *held & !mask | config & mask;
    }

    /// An address that the board makes up anew (quirk 19).
    pub(super) fn made_up_address(&mut self) -> [u8; 6] {
        core::array::from_fn(|_| self.addresses.next_byte())
    }
}
