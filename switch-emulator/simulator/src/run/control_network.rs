//! In-band control traffic: sessions with boards before the run, and their controllers during it.

use std::net::Ipv4Addr;

use super::{Run, Timer};
use crate::controller::SEGMENT_SPACING_NS;
use crate::device::DeviceReport;
use crate::error::Error;
use crate::inbox::InFlightFrame;
use crate::link::size_on_wire;
use crate::link::End;
use crate::network::Network;
use crate::result::RunEvent;

/// By then a board on a network has reached its controller.
const CONNECT_TIMEOUT_NS: u64 = 30_000_000_000;

impl Network {
    /// Lets the controller of a board on a network send `segments`, 10 ms apart. Returns the board's messages.
    pub(crate) fn control_by_network(
        &mut self,
        board: usize,
        segments: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let name = &self.boards[board].name;
        let Some((address, controller)) = self.controller_of(board) else {
            return Err(Error::Order(format!(
                "board {name:?} has no controller at its native ports: add_controller() and connect() it there"
            )));
        };
        let deadline_ns = self.now_ns() + CONNECT_TIMEOUT_NS;
        let mut run = Run::new(self, deadline_ns);
        let heard = |run: &Run| run.net.controllers[controller].is_heard(run.now_ns, address);
        while !heard(&run) {
            if !run.step() {
                let name = &run.net.boards[board].name;
                return Err(Error::Order(format!(
                    "board {name:?} has not connected within 30 s: its controller_address, controller_port and netmask \
                     must be those of the controller's network"
                )));
            }
        }
        for segment in segments {
            run.net.controllers[controller].send(run.now_ns, address, segment);
            run.collect_controller(controller, run.now_ns);
            run.run_for(SEGMENT_SPACING_NS);
        }
        run.end_ns = run.now_ns;
        run.deliver_pending();
        run.pause();
        Ok(self.controllers[controller].take_messages(address))
    }

    /// Address of a board on a network, and the controller that is cabled to it.
    pub(super) fn controller_of(&self, board: usize) -> Option<(Ipv4Addr, usize)> {
        let node = &self.boards[board];
        let (address, ports) = node.on_network.as_ref()?;
        let mut links = ports
            .iter()
            .filter_map(|port| node.links[usize::from(port.get()) - 1]);
        links.find_map(|link| match self.links[link].end {
            End::Controller(controller, _) => Some((*address, controller)),
            _ => None,
        })
    }
}

impl Run<'_> {
    /// Leaves the network as it is now, for a later run.
    fn pause(self) {
        for (log, is_deviation) in [(self.events, false), (self.deviations, true)] {
            for RunEvent { at_ns, board, text } in log.events {
                let boards = &mut self.net.boards;
                if let Some(node) = boards.iter_mut().find(|node| node.name == board) {
                    let at_ns = at_ns.saturating_add_unsigned(self.begin_ns);
                    let report = DeviceReport { text, is_deviation };
                    node.session.events.push((at_ns.unsigned_abs(), report));
                }
            }
        }
        for node in &mut self.net.boards {
            node.session.now_ns = self.now_ns;
        }
    }

    /// Lets a controller's frames leave, each as soon as its link is free, and notes when it is to be called again.
    pub(super) fn collect_controller(&mut self, controller: usize, now_ns: u64) {
        while let Some((links, frame)) = self.net.controllers[controller].take_frame() {
            let bytes = size_on_wire(frame.len());
            for index in links {
                let link = &mut self.net.links[index];
                let begin_ns = link.busy_until_ns().max(now_ns);
                link.occupy(begin_ns, bytes);
                let copy = InFlightFrame::of_bytes(frame.clone(), &mut self.net.arena);
                self.transmit(index, begin_ns, copy);
            }
        }
        self.arm_controller(controller, now_ns);
    }

    pub(super) fn arm_controller(&mut self, controller: usize, now_ns: u64) {
        let at_ns = self.net.controllers[controller].work_at_ns(now_ns);
        self.arm(Timer::Stack(controller as u32), at_ns);
    }
}
