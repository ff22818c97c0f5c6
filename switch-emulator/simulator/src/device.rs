//! Devices between the links of a network.
//!
//! A [`Device`] is either a Zodiac FX, the firmware of `zodiac-firmware` unchanged, or a [`Switch`] of another
//! kind, for which there is no firmware but a model of what takes time in it. To the event loop all look alike:
//! frames, segments and the passing of time go in, [`DeviceOutput`]s come out.
//!
//! | module | what it is |
//! |---|---|
//! | `profile` | the numbers of any device, read from TOML; its `kind` chooses |
//! | `config` | the settings of the other switches |
//! | `openflow` | the OpenFlow 1.0 table and agent that the other switches share |
//! | `linux` | a software switch on Linux, such as the Banana Pi R1 |
//! | `generic` | a switch with a queue discipline before each port |

use std::collections::VecDeque;
use std::fmt;

use zodiac_firmware::{Board, Counters, DeferredFrame, Instant, PortNumber};

mod config;
mod generic;
mod linux;
mod openflow;
mod profile;

pub use config::SwitchConfig;
pub use generic::GenericSwitchProfile;
pub use linux::{LinuxSwitchProfile, BANANA_PI_R1};
pub use profile::{DeviceProfile, SwitchProfile};

pub(crate) use of_switch::{PortSet, MAX_PORTS};

use self::openflow::OpenFlowAgent;

/// Output of a device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeviceOutput {
    /// When; for a frame, when its first bit departs, which may lie in the future.
    pub(crate) at: Instant,
    pub(crate) kind: DeviceOutputKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeviceOutputKind {
    /// A frame, without frame check sequence, that leaves by these ports.
    Frame { ports: PortSet, data: Vec<u8> },
    /// Bytes for the controller.
    Controller(Vec<u8>),
    /// The device wants a session with its controller.
    Connect,
    /// The device has ended the session.
    Close,
    /// Something to tell the user.
    Event(DeviceReport),
}

/// Report of a device: the fault, where it is, and how to mend it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeviceReport {
    pub(crate) text: String,
    /// Nothing is broken: a message of the controller was lost, or did something else than it asks.
    pub(crate) is_deviation: bool,
}

/// A switch of another kind than the Zodiac FX. Calls take non-decreasing instants.
pub(crate) trait SwitchModel: fmt::Debug + Send {
    /// Returns its OpenFlow agent.
    fn agent(&mut self) -> &mut OpenFlowAgent;
    /// Returns the queue of its outputs.
    fn outputs(&mut self) -> &mut VecDeque<DeviceOutput>;
    /// The cable of a port runs at this rate: see [`SwitchProfile::has_lower_rates`].
    fn set_link_rate(&mut self, _port: u8, _rate_bps: u64) {}
    /// A frame, without frame check sequence, has arrived on a port: all of it, or what a cut-through switch waits for.
    fn frame(&mut self, now: Instant, port: u8, data: Vec<u8>);
    /// Does all that is due until now.
    fn advance(&mut self, now: Instant);
    /// Returns when [`Switch::advance`] has next something to do.
    fn poll_at(&self) -> Option<Instant>;
    /// Returns its counters. Those of things that it lacks stay 0.
    fn counters(&self) -> Counters;

    /// Returns the latest instant at which the next frame, which arrives at `arrival`, must be handed over if nothing
    /// else happens. Until then it changes nothing that the switch does.
    #[inline]
    fn deliver_by(&self, arrival: Instant) -> Instant {
        arrival
    }

    /// A cable was plugged into a port or pulled out of it.
    fn link_state(&mut self, now: Instant, port: u8, is_up: bool) {
        self.advance(now);
        if let Some(status) = self.agent().link_state(port, is_up) {
            self.answer(now, status);
        }
    }

    /// The session with the controller is open.
    fn connected(&mut self, now: Instant) {
        self.advance(now);
        let hello = self.agent().connected();
        self.answer(now, hello);
    }

    /// Bytes of the controller.
    fn segment(&mut self, now: Instant, bytes: &[u8]) {
        self.advance(now);
        for answer in self.agent().segment(now.as_nanos(), bytes) {
            self.answer(now, answer);
        }
    }

    /// Its agent writes to the controller.
    fn answer(&mut self, at: Instant, bytes: Vec<u8>) {
        let kind = DeviceOutputKind::Controller(bytes);
        self.outputs().push_back(DeviceOutput { at, kind });
    }

    /// Returns its next output.
    #[inline]
    fn poll_output(&mut self) -> Option<DeviceOutput> {
        self.outputs().pop_front()
    }
}

/// A device between links.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are boards, whose state is best reached directly
pub(crate) enum Device {
    Board(Board),
    Switch(Box<dyn SwitchModel>),
}

impl Device {
    pub(crate) fn connected(&mut self, now: Instant) {
        match self {
            Self::Board(board) => board.connected(now),
            Self::Switch(switch) => switch.connected(now),
        }
    }

    /// The session with the controller is gone. Only a Zodiac FX takes notice of it.
    pub(crate) fn disconnected(&mut self, now: Instant) {
        match self {
            Self::Board(board) => board.disconnected(now),
            Self::Switch(_) => {}
        }
    }

    pub(crate) fn segment(&mut self, now: Instant, bytes: &[u8]) {
        match self {
            Self::Board(board) => board.segment(now, bytes),
            Self::Switch(switch) => switch.segment(now, bytes),
        }
    }

    /// A port has a cable, which runs at this rate. The ports of a Zodiac FX have one rate, and its links are up from the
    /// beginning.
    pub(crate) fn lay_cable(&mut self, port: u8, rate_bps: u64) {
        match self {
            Self::Board(_) => {}
            Self::Switch(switch) => {
                switch.set_link_rate(port, rate_bps);
                switch.link_state(Instant::from_nanos(0), port, true);
            }
        }
    }

    /// A port has no cable in the network. That of a connection to the controller counts as one.
    pub(crate) fn lacks_cable(&mut self, now: Instant, port: u8) {
        match self {
            Self::Board(board) if board.carries_control(board_port(port)) => {}
            _ => self.link_state(now, port, false),
        }
    }

    #[inline]
    pub(crate) fn frame(&mut self, now: Instant, port: u8, data: Vec<u8>) {
        match self {
            Self::Board(board) => board.frame_owned(now, board_port(port), data),
            Self::Switch(switch) => switch.frame(now, port, data),
        }
    }

    /// A cable was plugged into a port or pulled out of it.
    pub(crate) fn link_state(&mut self, now: Instant, port: u8, is_up: bool) {
        match self {
            Self::Board(board) => board.link_state(now, board_port(port), is_up),
            Self::Switch(switch) => switch.link_state(now, port, is_up),
        }
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        match self {
            Self::Board(board) => board.advance(now),
            Self::Switch(switch) => switch.advance(now),
        }
    }

    #[inline]
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        match self {
            Self::Board(board) => board.poll_at(),
            Self::Switch(switch) => switch.poll_at(),
        }
    }

    /// Returns the latest instant at which the next frame, which arrives at `arrival`, must be handed over if nothing
    /// else happens.
    #[inline]
    pub(crate) fn deliver_by(&mut self, arrival: Instant, port: u8, bytes: usize) -> Instant {
        match self {
            Self::Board(board) => board.deliver_by(arrival, board_port(port), bytes),
            Self::Switch(switch) => switch.deliver_by(arrival),
        }
    }

    /// Returns whether a frame may be deferred.
    #[inline]
    pub(crate) fn can_defer(&self, frame: &DeferredFrame) -> bool {
        match self {
            Self::Board(board) => board.can_defer(frame),
            Self::Switch(_) => false,
        }
    }

    #[inline]
    pub(crate) fn poll_output(&mut self) -> Option<DeviceOutput> {
        match self {
            Self::Board(board) => loop {
                let output = DeviceOutput::of_board(board.poll_output()?);
                if output.is_some() {
                    return output;
                }
            },
            Self::Switch(switch) => switch.poll_output(),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        match self {
            Self::Board(board) => board.counters(),
            Self::Switch(switch) => switch.counters(),
        }
    }
}

#[inline]
pub(crate) fn board_port(port: u8) -> PortNumber {
    PortNumber::new(port).expect("connect() refuses ports that the device does not have")
}

impl DeviceOutput {
    /// Returns the output if it matters to a network; what concerns the serial console, USB and EEPROM does not.
    #[inline]
    fn of_board(output: zodiac_firmware::Output) -> Option<Self> {
        use zodiac_firmware::OutputKind as Kind;
        let kind = match output.kind {
            Kind::Frame { ports, data } => DeviceOutputKind::Frame {
                ports: ports.into(),
                data,
            },
            Kind::Controller(bytes) => DeviceOutputKind::Controller(bytes),
            Kind::Connect => DeviceOutputKind::Connect,
            Kind::Close => DeviceOutputKind::Close,
            Kind::Event(event) => DeviceOutputKind::Event(DeviceReport {
                text: event.to_string(),
                is_deviation: event.is_deviation(),
            }),
            Kind::Console(_) | Kind::Detach | Kind::Attach | Kind::Eeprom(_) => return None,
        };
        Some(Self {
            at: output.at,
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_ports_gives_them_in_order() {
        let ports = PortSet::default().with(5).with(1).with(64).with(5);
        assert_eq!(ports.iter().collect::<Vec<_>>(), [1, 5, 64]);
        assert_eq!(ports.without(1).iter().collect::<Vec<_>>(), [5, 64]);
        assert_eq!(
            PortSet::up_to(5).iter().collect::<Vec<_>>(),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(PortSet::up_to(64).iter().count(), 64);
        assert!(PortSet::default().is_empty());
    }
}
