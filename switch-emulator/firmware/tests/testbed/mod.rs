//! A board with a controller, and the frames and messages to try it with.
#![allow(dead_code, unreachable_pub)] // each test uses its part

pub mod openflow13;

use zodiac_firmware::{
    Board, Config, ControlCosts, Duration, Event, Instant, OutputKind, PortMask, PortNumber,
    Profile, ZODIAC_FX,
};

/// Longer than the board works on any message and its acknowledgement.
pub const SETTLE: Duration = Duration::from_millis(4);

/// A frame that left the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub at: Instant,
    pub ports: PortMask,
    pub data: Vec<u8>,
}

/// A board, and what it gave.
pub struct Testbed {
    pub board: Board,
    pub now: Instant,
    pub departures: Vec<Departure>,
    pub replies: Vec<Vec<u8>>,
    pub events: Vec<Event>,
    pub connects: Vec<Instant>,
    pub closes: Vec<Instant>,
}

/// Returns the crate's profile without the work of timers, which would fall on some frames.
pub fn quiet_profile() -> Profile {
    let mut profile = Profile::from_toml(ZODIAC_FX).unwrap();
    profile.cpu.timers.cost_ps = 0;
    profile
}

/// As above, and messages of the controller take no time, so that the main loop keeps its phase.
pub fn free_control_profile() -> Profile {
    let mut profile = quiet_profile();
    profile.cpu.control = ControlCosts::default();
    profile
}

/// Settings of the Loko paper: without housekeeping; the main loop in step with the power-up.
pub fn quiet_config() -> Config {
    Config {
        ofchecks: false,
        loop_phase_ns: Some(0),
        ..Config::default()
    }
}

pub fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

impl Testbed {
    pub fn new(profile: &Profile, config: Config) -> Self {
        let mut board = Board::new(profile, config, 0).unwrap();
        board.advance(Instant::ZERO);
        Self {
            board,
            now: Instant::ZERO,
            departures: Vec::new(),
            replies: Vec::new(),
            events: Vec::new(),
            connects: Vec::new(),
            closes: Vec::new(),
        }
    }

    /// With an OpenFlow 1.0 session, which has asked for the features.
    pub fn connected(profile: &Profile, config: Config) -> Self {
        let mut bed = Self::new(profile, config);
        bed.connect();
        bed
    }

    /// Lets a controller connect that speaks OpenFlow 1.0.
    pub fn connect(&mut self) {
        self.board.connected(self.now);
        self.exchange(&message(0, &[]));
        self.exchange(&message(5, &[]));
        self.replies.clear();
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.board.advance(self.now);
        while let Some(output) = self.board.poll_output() {
            match output.kind {
                OutputKind::Frame { ports, data } => self.departures.push(Departure {
                    at: output.at,
                    ports,
                    data,
                }),
                OutputKind::Controller(message) => self.replies.push(message),
                OutputKind::Event(event) => self.events.push(event),
                OutputKind::Connect => self.connects.push(output.at),
                OutputKind::Close => self.closes.push(output.at),
                // The console's.
                OutputKind::Console(_)
                | OutputKind::Detach
                | OutputKind::Attach
                | OutputKind::Eeprom(_) => {}
            }
        }
    }

    /// The controller ends its half of the session.
    pub fn finish(&mut self) {
        self.board.finished(self.now);
        self.wait(SETTLE);
    }

    /// The controller resets the session.
    pub fn reset(&mut self) {
        self.board.reset(self.now);
        self.wait(SETTLE);
    }

    /// Sends a segment. Returns the messages that come back.
    pub fn exchange(&mut self, segment: &[u8]) -> Vec<Vec<u8>> {
        self.board.segment(self.now, segment);
        self.wait(SETTLE);
        std::mem::take(&mut self.replies)
    }

    /// Hands a frame in and lets it pass through.
    pub fn frame(&mut self, ingress: u8, frame: &[u8]) -> Vec<Departure> {
        self.board.frame(self.now, port(ingress), frame);
        self.wait(Duration::from_millis(10));
        std::mem::take(&mut self.departures)
    }

    /// Installs entries; none may be refused.
    pub fn install(&mut self, entries: impl IntoIterator<Item = FlowMod>) {
        for entry in entries {
            let replies = self.exchange(&entry.message());
            assert!(replies.is_empty(), "refused: {replies:?}");
        }
    }
}

/// Returns an OpenFlow 1.0 message with transaction identifier 7.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    [&[1, kind], &length.to_be_bytes()[..], &[0, 0, 0, 7], body].concat()
}

/// A `FLOW_MOD`.
#[derive(Clone, Debug)]
pub struct FlowMod {
    pub command: u16,
    pub fields: [u8; 40],
    pub cookie: u64,
    pub priority: u16,
    pub flags: u16,
    pub actions: Vec<u8>,
}

pub const ADD: u16 = 0;
pub const MODIFY: u16 = 1;
pub const MODIFY_STRICT: u16 = 2;
pub const DELETE: u16 = 3;
pub const DELETE_STRICT: u16 = 4;

impl FlowMod {
    pub fn add(fields: [u8; 40], priority: u16, actions: Vec<u8>) -> Self {
        Self {
            command: ADD,
            fields,
            cookie: 0,
            priority,
            flags: 0,
            actions,
        }
    }

    pub fn command(self, command: u16) -> Self {
        Self { command, ..self }
    }

    pub fn message(&self) -> Vec<u8> {
        let body = [
            &self.fields[..],
            &self.cookie.to_be_bytes(),
            &self.command.to_be_bytes(),
            &[0; 4],
            &self.priority.to_be_bytes(),
            &[0xff; 6],
            &self.flags.to_be_bytes(),
            &self.actions,
        ]
        .concat();
        message(14, &body)
    }
}

/// An action that sends to a port.
pub fn output(port: u16) -> Vec<u8> {
    [&[0, 0, 0, 8], &port.to_be_bytes()[..], &[0xff, 0xff]].concat()
}

/// Which fields of a match are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    Port,
    FiveTuple,
    All,
}

/// Returns the match of the `number`th flow: [`udp`] frames to that destination port, received on port 1.
pub fn fields(kind: Fields, number: u16) -> [u8; 40] {
    let wildcards: u32 = match kind {
        Fields::Port => 0x003f_fffe,
        Fields::FiveTuple => 0x0030_000f,
        Fields::All => 0x0030_0002,
    };
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&wildcards.to_be_bytes());
    // A port match has no destination port: flow 0 is the one on ingress port 1.
    let in_port = if kind == Fields::Port && number != 0 {
        100 + number
    } else {
        1
    };
    bytes[4..6].copy_from_slice(&in_port.to_be_bytes());
    bytes[6..18].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    bytes[22..24].copy_from_slice(&[0x08, 0x00]);
    bytes[25] = 17;
    bytes[28..36].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[36..38].copy_from_slice(&1000_u16.to_be_bytes());
    bytes[38..40].copy_from_slice(&(2000 + number).to_be_bytes());
    bytes
}

/// A match that everything fulfils that can match at all.
pub fn everything() -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&0x003f_ffff_u32.to_be_bytes());
    bytes
}

/// Returns a UDP frame of the `number`th flow with `length` bytes on the wire (with FCS).
pub fn udp(length: usize, number: u16) -> Vec<u8> {
    let mut frame = vec![0; length - 4];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[16..18].copy_from_slice(&((length - 18) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&1000_u16.to_be_bytes());
    frame[36..38].copy_from_slice(&(2000 + number).to_be_bytes());
    frame
}
