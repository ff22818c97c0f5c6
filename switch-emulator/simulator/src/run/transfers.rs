//! Transfers over TCP: what their ends send and receive.

use crate::inbox::InFlightFrame;
use crate::link::size_on_wire;
use crate::tcp::Side;

use super::{Run, Timer};

impl Run<'_> {
    /// Lets all transfers send for `duration_ns`.
    pub(super) fn start_transfers(&mut self, duration_ns: u64) {
        for index in 0..self.net.connections.len() {
            self.net.connections[index].start(self.begin_ns, self.begin_ns + duration_ns);
            self.arm_transfer(index, Side::Sender, self.begin_ns);
        }
    }

    /// Does what is due at one side, which sends a frame at most.
    pub(super) fn transfer(&mut self, index: usize, side: Side, now_ns: u64) {
        let line = self.transfer_line(index, side);
        let is_free = self.net.links[line].busy_until_ns() <= now_ns;
        let frame = self.net.connections[index].work(side, now_ns, is_free, &mut self.buffer_pool);
        if let Some(data) = frame {
            self.net.links[line].occupy(now_ns, size_on_wire(data.len()));
            let frame = InFlightFrame::of_bytes(data, &mut self.net.arena);
            self.transmit(line, now_ns, frame);
        }
        self.arm_transfer(index, side, now_ns);
    }

    /// The beginning of a frame passes a host's tap; false if it is no transfer's.
    pub(super) fn deliver_tcp(&mut self, host: usize, begin_ns: u64, data: &[u8]) -> bool {
        if self.net.hosts[host].tcp.is_empty() {
            return false;
        }
        let Some(line) = self.net.hosts[host].link else {
            return false;
        };
        let wire_ns = self.net.links[line]
            .timing
            .wire_ns(size_on_wire(data.len()));
        let end_ns = begin_ns + wire_ns;
        let ends = self.net.hosts[host].tcp.iter();
        let connections = &mut self.net.connections;
        let found = ends
            .copied()
            .find(|(index, side)| connections[*index].deliver(*side, begin_ns, end_ns, data));
        if let Some((index, side)) = found {
            self.arm_transfer(index, side, self.now_ns);
        }
        found.is_some()
    }

    fn transfer_line(&self, index: usize, side: Side) -> usize {
        let host = self.net.connections[index].hosts[side as usize];
        self.net.hosts[host]
            .link
            .expect("add_tcp refuses hosts without a link")
    }

    fn arm_transfer(&mut self, index: usize, side: Side, now_ns: u64) {
        let busy_until_ns = self.net.links[self.transfer_line(index, side)].busy_until_ns();
        let at_ns = self.net.connections[index].wake_ns(side, now_ns, busy_until_ns);
        self.arm(Timer::Transfer(index as u32, side), at_ns);
    }
}
