//! Frames outside of OpenFlow: the integrated switch bridges them without the CPU.

use super::Board;
use crate::event::Event;
use crate::port::PortNumber;
use crate::time::Instant;

impl Board {
    /// Bridges a frame. Returns it if the IP stack receives it as well.
    pub(super) fn bridge(
        &mut self,
        now: Instant,
        port: PortNumber,
        data: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let to = self.learning.pass(now, port, &data);
        if to.cpu && self.is_native(port) {
            if !to.ports.is_empty() {
                let copy = self.out.pool.copy(&data);
                self.out.bridge(now, port, to.ports, copy);
            }
            return Some(data);
        }
        if !to.ports.is_empty() {
            self.out.bridge(now, port, to.ports, data);
            return None;
        }
        self.out.counters.dropped_policy += 1;
        if !self.reported.contains(port) && !self.agent.is_on_network() {
            self.reported = self.reported.with(port);
            let port = port.get();
            self.out.event(now, Event::PortNotOpenFlow { port });
        }
        self.out.pool.recycle(data);
        None
    }
}
