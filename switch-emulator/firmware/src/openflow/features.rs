//! `FEATURES_REPLY`, and how the agent describes ports.

use super::agent::Agent;
use super::wire::{message, Message};
use crate::port::PortNumber;
use crate::quirks::Quirk;

impl Agent {
    pub(super) fn features(&mut self, xid: [u8; 4]) -> Message {
        self.connection.features_requested();
        if self.quirks.has(Quirk::FeaturesHideLinkChanges) {
            self.link_seen = self.link_up;
        }
        // Flow, table and port statistics; with the specification also addresses of ARP in matches.
        let capabilities = if self.quirks.has(Quirk::ArpUnmatched) {
            0x07
        } else {
            0x87
        };
        let mut reply = self
            .reply(message::FEATURES_REPLY, xid)
            .u16(0)
            .bytes(&self.mac.0)
            .u32(0) // buffers
            .u8(1) // tables
            .uninitialised(3)
            .u32(capabilities)
            .u32(0x0000_07ff); // actions 0 to 10
        for port in self.openflow_ports.iter() {
            reply = self.port_description(reply, port);
        }
        reply
    }

    /// A port's MAC address where it is not made up anew each time: the board's, with the port's number added.
    pub(super) fn port_address(&self, port: PortNumber) -> [u8; 6] {
        let mut address = self.mac.0;
        address[5] = address[5].wrapping_add(port.get());
        address
    }

    /// An address that the board makes up anew (quirk 19).
    pub(super) fn made_up_address(&mut self) -> [u8; 6] {
        core::array::from_fn(|_| self.addresses.next_byte())
    }

    pub(super) fn port_description(&mut self, reply: Message, port: PortNumber) -> Message {
        let address = if self.quirks.has(Quirk::MadeUpAddresses) {
            self.made_up_address()
        } else {
            self.port_address(port)
        };
        let config = self.port_config[usize::from(port.get()) - 1];
        let up = if self.quirks.has(Quirk::FeaturesHideLinkChanges) {
            self.link_seen
        } else {
            self.link_up
        };
        reply
            .u16(port.get().into())
            .bytes(&address)
            .text(&format!("eth{}", port.get() - 1), 16)
            .u32(config)
            .u32(u32::from(!up.contains(port)))
            .u32(0x0000_0088) // 100 Mbit/s full duplex, copper
            .zeros(12)
    }
}
