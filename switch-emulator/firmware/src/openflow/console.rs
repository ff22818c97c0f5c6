//! Access of the serial console to the agent.

use std::net::SocketAddrV4;

use super::agent::Agent;
use super::session::Session;
use crate::config::FailState;
use crate::outbox::Outbox;
use crate::port::{HardwareCounters, PortMask, PortNumber};
use crate::table::FlowTable;
use crate::time::Instant;

/// State of the connection, as the console tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Connected,
    Disconnected,
    Disabled,
}

impl Agent {
    pub(crate) fn connection_state(&self) -> ConnectionState {
        if !self.state.connection.is_enabled() {
            ConnectionState::Disabled
        } else if self.is_established() {
            ConnectionState::Connected
        } else {
            ConnectionState::Disconnected
        }
    }

    /// Returns whether OpenFlow is switched on.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.state.connection.is_enabled()
    }

    /// Negotiated version; 0 before the controller's HELLO.
    pub(crate) const fn version(&self) -> u8 {
        self.state.version
    }

    /// Returns whether the board hangs until it is power-cycled.
    pub(crate) const fn is_halted(&self) -> bool {
        self.state.halted
    }

    pub(crate) const fn links(&self) -> PortMask {
        self.state.ports.link_up
    }

    /// Frames that the CPU received by a port.
    pub(crate) const fn frames_received(&self, port: PortNumber) -> u64 {
        self.state.ports.received[port.get() as usize - 1]
    }

    /// Returns the hardware counters of a port as far as the firmware has read them.
    pub(crate) const fn totals(&self, port: PortNumber) -> HardwareCounters {
        self.state.ports.totals[port.get() as usize - 1]
    }

    /// Takes over from before a restart what is outside of the CPU: the state of the links.
    pub(crate) fn take_over(&mut self, before: &Self) {
        self.state.ports.link_up = before.state.ports.link_up;
        self.state.ports.link_seen = before.state.ports.link_up;
    }

    /// Erases all entries. Returns how many there were.
    pub(crate) fn clear_flows(&mut self) -> i32 {
        let count = self.tended().0.count();
        self.clear();
        count
    }

    pub(crate) fn set_fail_state(&mut self, fail_state: FailState) {
        self.state.config.fail_state = fail_state;
    }

    /// From the controller's next HELLO on.
    pub(crate) fn set_forced_version(&mut self, version: u8) {
        self.state.config.forced_version = version;
    }

    pub(crate) fn set_ethertype_filter(&mut self, filter: bool) {
        self.state.config.ethertype_filter = filter;
    }

    /// Where the board's own connections go, from the next one on.
    pub(crate) fn set_controller(&mut self, controller: SocketAddrV4) {
        if let Session::Native(native) = &mut self.state.session {
            native.set_controller(controller);
        }
    }

    /// Switches `OpenFlow` on or off at `now`. Off erases all entries and ends the session; on begins to connect as soon
    /// as an attempt is due.
    pub(crate) fn set_enabled(&mut self, now: Instant, enabled: bool, out: &mut Outbox) {
        let was_established = self.is_established();
        self.state.connection.set_enabled(enabled);
        if enabled {
            if self.state.connection.attempt() {
                self.clear_if_secure();
                self.state.session.connect(now, out);
            }
            return;
        }
        self.clear();
        if was_established {
            self.state.connection.lost();
            self.state.session.restart();
            self.state.session.close(now, out);
        }
    }
}

impl FlowTable {
    /// Returns the bytes that used any entry.
    pub(crate) fn bytes(&self) -> i64 {
        self.views()
            .fold(0, |sum, entry| sum.wrapping_add(entry.bytes))
    }
}
