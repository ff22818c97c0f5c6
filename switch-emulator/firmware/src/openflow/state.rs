//! State that the dataplanes of all versions share: clock, connection, session, ports, receive buffer.

use std::sync::Arc;

use super::clock::Timekeeping;
use super::config::AgentConfig;
use super::connection::Connection;
use super::ports::AgentPorts;
use super::rx_buffer::RxBuffer;
use super::session::Session;
use crate::config::{Config, FailState};
use crate::cost::Costs;
use crate::openflow13::PortCounters;
use crate::outbox::Outbox;
use crate::port::PortNumber;
use crate::profile::Profile;
use crate::quirks::Quirk;
use openflow::wire::{MessageBuilder, VERSION_1_0, VERSION_1_3};

/// The state that the dataplanes of all versions share.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(super) struct AgentState {
    pub(super) time: Timekeeping,
    pub(super) connection: Connection,
    pub(super) config: AgentConfig,
    pub(super) session: Session,
    pub(super) costs: Arc<Costs>,
    pub(super) ports: AgentPorts,
    pub(super) rx: RxBuffer,
    /// Negotiated version; 0 before the controller's HELLO.
    pub(super) version: u8,
    /// The board hangs until it is power-cycled.
    pub(super) halted: bool,
}

impl AgentState {
    /// `seed` draws what is random in the IP stack.
    pub(super) fn new(profile: &Profile, config: &Config, costs: Arc<Costs>, seed: u64) -> Self {
        Self {
            time: Timekeeping::new(config.quirks),
            connection: Connection::new(config.openflow_enabled, config.ofchecks, config.quirks),
            config: AgentConfig::new(profile, config),
            session: Session::new(config, seed),
            costs,
            ports: AgentPorts::new(),
            rx: RxBuffer::new(),
            version: 0,
            halted: false,
        }
    }

    /// Returns whether the board deviates in this way.
    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.config.quirks.has(quirk)
    }

    /// Returns whether the session speaks OpenFlow 1.3.
    pub(super) const fn speaks_13(&self) -> bool {
        self.version == VERSION_1_3 && self.config.knows_13
    }

    /// Returns whether the session with the controller is established.
    pub(super) fn is_established(&self) -> bool {
        self.session.is_established(&self.connection)
    }

    /// Returns whether the board may send unsolicited messages: by the specification, not before the version is
    /// negotiated.
    pub(super) fn may_speak(&self) -> bool {
        self.version != 0 || self.has(Quirk::SpeaksBeforeHello)
    }

    pub(super) fn is_safe(&self) -> bool {
        self.config.fail_state == FailState::Safe
    }

    /// Returns whether the agent forwards frames.
    pub(super) fn forwards(&self) -> bool {
        let known = self.version == VERSION_1_0
            || self.speaks_13()
            || (self.is_safe() && !self.has(Quirk::PauseBeforeHello));
        known && (self.is_established() || self.is_safe())
    }

    pub(super) fn reply(&self, kind: u8, xid: [u8; 4]) -> MessageBuilder {
        MessageBuilder::new(self.version, kind, xid)
    }

    /// Returns whether a `PACKET_IN` of this version can be sent. The IP stack also takes messages while its connection
    /// opens or is half closed.
    pub(super) fn takes_packet_ins(&self, version: u8) -> bool {
        self.version == version && (self.is_established() || self.session.is_half_open())
    }

    /// Returns the OpenFlow port with this number.
    pub(super) fn openflow_port(&self, number: u32) -> Option<PortNumber> {
        let port = u8::try_from(number).ok().and_then(PortNumber::new)?;
        self.config.openflow_ports.contains(port).then_some(port)
    }

    /// Returns a port's counters; those of the hardware as far as read while this version was spoken. If these are exact
    /// (quirk 32), what is still unread counts as well.
    pub(super) fn port_counters(
        &self,
        port: PortNumber,
        is_13: bool,
        out: &Outbox,
    ) -> PortCounters {
        let index = port.index();
        let ports = &self.ports;
        let mut totals = if is_13 {
            ports.totals13[index]
        } else {
            ports.totals[index]
        };
        if !self.has(Quirk::CoarsePortCounters) {
            totals.add(out.hardware[index], u64::MAX);
        }
        PortCounters {
            number: port.get(),
            received: self.ports.received[index],
            sent: out.transmitted[index],
            received_bytes: totals.received_bytes,
            sent_bytes: totals.sent_bytes,
            received_dropped: totals.received_dropped,
        }
    }
}
