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
        if !self.connection.is_enabled() {
            ConnectionState::Disabled
        } else if self.is_established() {
            ConnectionState::Connected
        } else {
            ConnectionState::Disconnected
        }
    }

    /// Returns whether OpenFlow is switched on.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.connection.is_enabled()
    }

    /// Negotiated version; 0 before the controller's HELLO.
    pub(crate) const fn version(&self) -> u8 {
        self.version
    }

    /// Returns whether the board hangs until it is power-cycled.
    pub(crate) const fn is_halted(&self) -> bool {
        self.halted
    }

    pub(crate) const fn links(&self) -> PortMask {
        self.ports.link_up
    }

    /// Frames that the CPU received by a port.
    pub(crate) const fn frames_received(&self, port: PortNumber) -> u64 {
        self.ports.received[port.get() as usize - 1]
    }

    /// Returns the hardware counters of a port as far as the firmware has read them.
    pub(crate) const fn totals(&self, port: PortNumber) -> HardwareCounters {
        self.ports.totals[port.get() as usize - 1]
    }

    /// Takes over from before a restart what is outside of the CPU: the state of the links.
    pub(crate) fn take_over(&mut self, before: &Self) {
        self.ports.link_up = before.ports.link_up;
        self.ports.link_seen = before.ports.link_up;
    }

    /// Erases all entries. Returns how many there were.
    pub(crate) fn clear_flows(&mut self) -> i32 {
        let count = match &self.tables.switch13 {
            Some(switch) if self.speaks_13() => switch.count() as i32,
            _ => match &self.tables.spec13 {
                Some(switch) if self.tables.use_spec13() => switch.tables.count() as i32,
                _ => self.tables.table.count(),
            },
        };
        self.tables.clear();
        count
    }

    pub(crate) fn set_fail_state(&mut self, fail_state: FailState) {
        self.config.fail_state = fail_state;
    }

    /// From the controller's next HELLO on.
    pub(crate) fn set_forced_version(&mut self, version: u8) {
        self.config.forced_version = version;
    }

    pub(crate) fn set_ethertype_filter(&mut self, filter: bool) {
        self.config.ethertype_filter = filter;
    }

    /// Where the board's own connections go, from the next one on.
    pub(crate) fn set_controller(&mut self, controller: SocketAddrV4) {
        if let Session::Native(native) = &mut self.session {
            native.set_controller(controller);
        }
    }

    /// Switches `OpenFlow` on or off at `now`. Off erases all entries and ends the session; on begins to connect as soon
    /// as an attempt is due.
    pub(crate) fn set_enabled(&mut self, now: Instant, enabled: bool, out: &mut Outbox) {
        let was_established = self.is_established();
        self.connection.set_enabled(enabled);
        if enabled {
            if self.connection.attempt() {
                self.clear_if_secure();
                self.session.connect(now, out);
            }
            return;
        }
        self.tables.clear();
        if was_established {
            self.connection.lost();
            self.session.restart();
            self.session.close(now, out);
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
