//! `FEATURES_REPLY`, and how the agent describes ports.

use super::agent::Agent;
use super::UNINITIALISED;
use crate::port::PortNumber;
use crate::quirks::Quirk;
use openflow::message;
use openflow::wire::MessageBuilder;

impl Agent {
    pub(super) fn features(&mut self, xid: [u8; 4]) -> MessageBuilder {
        self.connection.features_requested();
        if self.config.quirks.has(Quirk::HiddenLinkChanges) {
            self.ports.link_seen = self.ports.link_up;
        }
        // Flow, table and port statistics; with the specification also addresses of ARP in matches.
        let capabilities = if self.config.quirks.has(Quirk::ArpFieldsUnmatched) {
            0x07
        } else {
            0x87
        };
        let mut reply = self
            .reply(message::FEATURES_REPLY, xid)
            .u16(0)
            .bytes(&self.config.mac.0)
            .u32(0) // buffers
            .u8(1) // tables
            .bytes(&[UNINITIALISED; 3])
            .u32(capabilities)
            .u32(0x0000_07ff); // actions 0 to 10
        for port in self.config.openflow_ports.iter() {
            reply = self.port_description(reply, port);
        }
        reply
    }

    pub(super) fn port_description(
        &mut self,
        reply: MessageBuilder,
        port: PortNumber,
    ) -> MessageBuilder {
        let address = if self.config.quirks.has(Quirk::RandomPortAddresses) {
            self.ports.made_up_address()
        } else {
            self.config.port_address(port)
        };
        let config = self.ports.config[usize::from(port.get()) - 1];
        let up = if self.config.quirks.has(Quirk::HiddenLinkChanges) {
            self.ports.link_seen
        } else {
            self.ports.link_up
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
