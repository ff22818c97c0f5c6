//! Connection to the controller: when to connect, when to probe, when to give up.

use crate::quirks::{Quirk, Quirks};

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waiting before the next attempt.
    Waiting,
    /// The next attempt is due.
    Due,
    /// An established session.
    Up,
}

/// Demands of a housekeeping tick, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demands {
    /// Send an `ECHO_REQUEST`.
    pub(super) echo: bool,
    /// Close the session.
    pub(super) close: Option<CloseReason>,
    /// Begin a connection.
    pub(super) connect: bool,
}

/// Why the switch closes a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// No `FEATURES_REQUEST` has come.
    NoFeaturesRequest,
    /// Nothing has come for 13 ticks.
    Silent,
}

/// Ticks of silence after which the firmware asks.
const QUIET_TICKS: u32 = 4;
/// Ticks of silence after which it gives up.
const SILENT_TICKS: u32 = 12;
/// Ticks between the loss of a connection and the next attempt.
const WAIT_TICKS: u32 = 3;

/// The connection to the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    state: State,
    /// Ticks since something came from the controller, or since power-up.
    heartbeat: u32,
    /// Ticks waited; a connection that comes up does not reset them.
    waited: u32,
    features_seen: bool,
    /// Whether silence closes the connection.
    watched: bool,
    /// Whether OpenFlow is switched on; without it no attempt is made.
    enabled: bool,
    quirks: Quirks,
}

impl Connection {
    pub(super) const fn new(enabled: bool, watched: bool, quirks: Quirks) -> Self {
        Self {
            state: State::Waiting,
            heartbeat: 0,
            waited: 0,
            features_seen: false,
            watched,
            enabled,
            quirks,
        }
    }

    /// Returns whether the agent takes its session for established.
    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// The TCP session is established.
    pub(super) fn established(&mut self) {
        self.state = State::Up;
        self.features_seen = !self.quirks.has(Quirk::NeedsFeaturesRequest);
        if !self.quirks.has(Quirk::SilenceBeforeSession) {
            self.heartbeat = 0;
        }
    }

    /// The TCP session is gone.
    pub(super) fn lost(&mut self) {
        self.state = State::Waiting;
    }

    /// Something came from the controller, be it the end of the session.
    pub(super) fn heard(&mut self) {
        self.heartbeat = 0;
    }

    pub(super) fn features_requested(&mut self) {
        self.features_seen = true;
    }

    /// Returns a housekeeping tick. A session that it closes counts as lost at once.
    pub(super) fn tick(&mut self) -> Demands {
        let mut demands = Demands::default();
        if self.heartbeat > QUIET_TICKS && self.is_up() {
            if self.features_seen || !self.watched {
                demands.echo = true;
            } else {
                demands.close = Some(CloseReason::NoFeaturesRequest);
                self.lost();
            }
        }
        self.heartbeat = self.heartbeat.saturating_add(1);
        if self.heartbeat > SILENT_TICKS && self.is_up() && self.watched {
            demands.close = Some(CloseReason::Silent);
            self.lost();
        }
        if self.state != State::Up {
            self.waited = self.waited.saturating_add(1);
            if self.state == State::Waiting && self.waited > WAIT_TICKS {
                self.waited = 0;
                self.state = State::Due;
            }
            demands.connect = self.attempt();
        }
        demands
    }

    /// Returns whether to begin a connection now. The firmware does so in the next main-loop iteration and, the session
    /// not being established yet, waits again from the one after that.
    pub(super) fn attempt(&mut self) -> bool {
        let begins = self.enabled && self.state == State::Due;
        if begins {
            self.state = State::Waiting;
        }
        begins
    }

    #[inline]
    pub(super) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
    }
}
