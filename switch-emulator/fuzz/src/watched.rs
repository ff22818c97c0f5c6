//! A board whose every output is checked.

use peak_alloc::PeakAlloc;
use zodiac_firmware::{
    Board, Counters, Duration, EepromImage, Instant, Output, OutputKind, PortNumber,
};

use crate::start::HELD_FRAMES;
use crate::testbed::{message, SETTLE};
use crate::{message13, reply, Start, Step};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Lengths of frames without FCS that the CPU sends.
const SENT_BYTES: std::ops::RangeInclusive<usize> = 60..=1_517;
/// Lengths of frames without FCS that a port receives.
const RECEIVED_BYTES: std::ops::RangeInclusive<usize> = 14..=1_531;
/// Entries of the table.
const ENTRIES: usize = 128;
/// Entries of all tables of OpenFlow 1.3.
const ENTRIES_13: usize = 512;
/// Units of the receive ring.
const RING_UNITS: u64 = 24;
/// Frames on their way to the CPU at most: those in the ring, and those that the integrated switch holds.
const MOST_IN_FLIGHT: u64 = RING_UNITS + 65_536 / 85 + 2 + HELD_FRAMES;
/// Calls and repetitions of one input, so that it ends soon.
const MOST_CALLS: u32 = 4_000;
/// Time that one input may take on the board's clock.
const LONGEST: Duration = Duration::from_millis(4 * 3_600_000);
/// Memory limit of a board at rest: its table, its pool of frames, its queues.
const MOST_BYTES_AT_REST: usize = 2_000_000;
/// Memory limit for each character typed. Queues keep the capacity of the longest backlog, at most twice as much: for a
/// character with its instant, and for what was printed for it.
const MOST_BYTES_TYPED: usize = 2 * (size_of::<(Instant, u8)>() + size_of::<Output>());
/// Time between ticks when the CPU is idle.
const TICK_NS: u64 = 501_000_000;

/// A board, and what must hold for it after every call.
///
/// A second board gets the same input in another manner: advanced to each instant that it names, with early calls
/// between, and buffers handed over instead of copied. Both must return the same outputs.
pub struct WatchedBoard {
    board: Board,
    other: Board,
    start: Start,
    now: Instant,
    boot: Instant,
    /// Bytes that the controller has written and not sent.
    written: Vec<u8>,
    last: Option<Step>,
    calls: u32,
    connected: bool,
    /// Characters typed so far. They may change what ports are for, and restart the board.
    typed: u64,
    /// EEPROM image saved by the last call.
    saved: Option<Box<EepromImage>>,
    /// Whether the board is on the USB bus.
    attached: bool,
    counters: Counters,
    departures: u64,
    ignored: u64,
    /// When each port is free again, counted from what has left by it.
    free_at: [Instant; 4],
    /// Whether a session has spoken OpenFlow 1.3.
    spoke_13: bool,
    /// When the last message left for the controller.
    replied_at: Instant,
    /// Live bytes before the board was made.
    bytes_before: usize,
}

fn make(start: Start) -> Board {
    Board::new(start.profile(), start.config(), start.seed.into()).expect("valid settings")
}

impl WatchedBoard {
    /// Switches a board on.
    ///
    /// # Panics
    /// When something does not hold, as all methods.
    #[must_use]
    pub fn new(start: Start) -> Self {
        let _ = start.profile(); // its memory is not the board's
        let bytes_before = MEMORY.current_usage();
        let mut watched = Self {
            board: make(start),
            other: make(start),
            start,
            now: start.boot(),
            boot: start.boot(),
            written: Vec::new(),
            last: None,
            calls: 0,
            connected: false,
            typed: 0,
            saved: None,
            attached: true,
            counters: Counters::default(),
            departures: 0,
            ignored: 0,
            free_at: [Instant::ZERO; 4],
            spoke_13: false,
            replied_at: Instant::ZERO,
            bytes_before,
        };
        // The power comes on with the first call.
        watched.board.advance(watched.now);
        watched.other.advance(watched.now);
        watched.check(watched.now);
        watched
    }

    /// Returns whether the input has used up its budget of calls or time.
    #[must_use]
    pub fn is_tired(&self) -> bool {
        self.calls > MOST_CALLS || self.now.saturating_since(self.boot) > LONGEST
    }

    /// Performs a step.
    pub fn perform(&mut self, step: Step) {
        if let Step::Again(times, pause) = step {
            if let Some(last) = self.last.take() {
                for _ in 0..times {
                    if self.is_tired() {
                        break;
                    }
                    self.wait(pause);
                    self.once(&last);
                }
                self.last = Some(last);
            }
        } else {
            self.once(&step);
            self.last = Some(step);
        }
    }

    fn once(&mut self, step: &Step) {
        match step {
            Step::Frame(port, frame) => self.frame(*port, frame),
            Step::Write(bytes) => self.written.extend_from_slice(bytes),
            Step::Send(most) => self.send(*most),
            Step::Message(message) => {
                self.written.extend_from_slice(message);
                self.send(usize::MAX);
            }
            Step::Wait(time) => self.wait(*time),
            Step::Connected => self.connect(),
            Step::Disconnected => self.both(Board::disconnected),
            Step::Handshake => self.handshake(),
            Step::Link(port, up) => self.both(|board, now| board.link_state(now, *port, *up)),
            Step::Type(keys) => {
                self.typed += keys.len() as u64;
                self.both(|board, now| board.console(now, keys));
            }
            Step::Again(..) => {}
        }
        if self.written.len() > 1 << 16 {
            self.written.clear();
        }
    }

    /// A controller connects that speaks OpenFlow 1.0.
    pub fn handshake(&mut self) {
        self.connect();
        for kind in [0, 5] {
            let payload = message(kind, &[]);
            self.both(|board, now| board.segment(now, &payload));
            self.wait(SETTLE);
        }
    }

    /// A controller connects that speaks OpenFlow 1.3.
    pub fn handshake_13(&mut self) {
        self.connect();
        for payload in [message13::hello(), message13::features_request()] {
            self.both(|board, now| board.segment(now, &payload));
            self.wait(SETTLE);
        }
    }

    /// A segment arrives, and the board has time to handle it.
    pub fn exchange(&mut self, payload: &[u8]) {
        self.both(|board, now| board.segment(now, payload));
        self.wait(SETTLE);
    }

    fn connect(&mut self) {
        self.connected = true;
        self.both(Board::connected);
    }

    fn send(&mut self, most: usize) {
        let length = self.written.len().min(most);
        let payload: Vec<u8> = self.written.drain(..length).collect();
        self.both(|board, now| board.segment(now, &payload));
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.both(Board::advance);
    }

    fn frame(&mut self, port: PortNumber, frame: &[u8]) {
        self.step_other();
        let mut owned = Vec::with_capacity(frame.len());
        owned.extend_from_slice(frame);
        self.other.frame_owned(self.now, port, owned);
        let earliest = self.earliest();
        self.board.frame(self.now, port, frame);
        // Port 4 is no OpenFlow port in the factory's settings. But pauses end at each port, and the integrated switch
        // passes on by itself what carries the tag of another port's VLAN. What is typed may change all that.
        let went = |counters: &Counters| {
            counters.pauses_received + counters.bridged + counters.dropped_switch
        };
        let ends_here = went(&self.board.counters()) == went(&self.counters);
        if !RECEIVED_BYTES.contains(&frame.len())
            || (port.get() == 4 && ends_here && self.typed == 0)
        {
            self.ignored += 1;
        }
        self.check(earliest);
    }

    /// Does the same to both boards.
    fn both(&mut self, act: impl Fn(&mut Board, Instant)) {
        self.step_other();
        act(&mut self.other, self.now);
        let earliest = self.earliest();
        act(&mut self.board, self.now);
        self.check(earliest);
    }

    /// Advances the other board from each instant that it names to the next.
    fn step_other(&mut self) {
        let mut passes: u64 = 0;
        while let Some(next) = self.other.poll_at().filter(|next| *next <= self.now) {
            self.other.advance(next);
            let later = self
                .other
                .poll_at()
                .expect("a board always has a next tick");
            assert!(later > next, "no progress at {next}");
            if passes % 16 == 0 {
                self.other.advance(next); // harmless
            }
            passes += 1;
            let ticks = self.now.saturating_since(self.boot).as_nanos() / TICK_NS + 1;
            assert!(
                passes <= u64::from(self.calls) * 64 + self.typed + 40 * ticks + 1_000,
                "{passes} passes until {} after {} calls",
                self.now,
                self.calls
            );
        }
    }

    /// Before this nothing can happen in a call at the present instant.
    fn earliest(&self) -> Instant {
        let first = if self.calls == 0 {
            self.now
        } else {
            self.board
                .poll_at()
                .expect("a board always has a next tick")
        };
        first.min(self.now)
    }

    /// Checks what a call has brought.
    fn check(&mut self, earliest: Instant) {
        self.calls += 1;
        self.board.advance(self.now);
        self.other.advance(self.now);
        let next = self
            .board
            .poll_at()
            .expect("a board always has a next tick");
        assert!(next > self.now, "next pass at {next}, now {}", self.now);
        assert_eq!(self.board.poll_at(), self.other.poll_at(), "next pass");
        self.spoke_13 |= self.board.openflow_version() == 4;
        while let Some(output) = self.board.poll_output() {
            let same = self.other.poll_output();
            assert_eq!(same.as_ref(), Some(&output), "output of the same calls");
            assert!(
                output.at >= earliest,
                "{output:?} before its cause at {earliest}"
            );
            self.check_output(&output);
            if let Some(Output {
                kind: OutputKind::Frame { data, .. },
                ..
            }) = same
            {
                self.other.recycle(data);
            }
        }
        assert_eq!(self.other.poll_output(), None, "output of the same calls");
        if let Some(image) = self.saved.take() {
            assert_eq!(*image, *self.board.eeprom(), "what was saved last");
        }
        self.check_counters();
        if self.calls % 16 == 0 {
            self.check_table();
        }
    }

    fn check_output(&mut self, output: &Output) {
        match &output.kind {
            OutputKind::Frame { ports, data } => {
                // Frames that pass the integrated switch by itself may be as long as those that a port receives.
                let bridged = self.board.counters().bridged > self.counters.bridged;
                let longest = if bridged {
                    RECEIVED_BYTES.end()
                } else {
                    SENT_BYTES.end()
                };
                assert!(
                    (SENT_BYTES.start()..=longest).contains(&&data.len()),
                    "{} bytes",
                    data.len()
                );
                assert!(!ports.is_empty(), "a frame to nowhere");
                self.departures += ports.len() as u64;
                let bytes = 8 + data.len() as u64 + 4 + 12;
                for port in ports.iter() {
                    let free_at = &mut self.free_at[usize::from(port.get()) - 1];
                    assert!(
                        output.at >= *free_at,
                        "port {port} sends two frames at {}",
                        output.at
                    );
                    *free_at = output.at + Duration::from_nanos(bytes * 80);
                }
            }
            OutputKind::Controller(message) => {
                assert!(self.connected, "a message without a session");
                assert!(output.at >= self.replied_at, "messages out of order");
                self.replied_at = output.at;
                if self.start.specification && message.first() == Some(&4) {
                    reply::check_spec_13(message);
                } else if self.spoke_13 && !self.start.specification {
                    reply::check_13(message);
                } else {
                    reply::check(message, self.start.specification);
                }
            }
            OutputKind::Event(event) => {
                let text = event.to_string();
                assert!(!text.is_empty() && !text.contains('\n'), "{text}");
            }
            OutputKind::Console(text) => {
                assert!(!text.is_empty() && self.attached, "text to nobody");
                let printable = |byte| {
                    matches!(
                        byte,
                        b' '..=b'~' | b'\r' | b'\n' | 0x06 | 0x08 | 0x15 | 0x18
                    )
                };
                assert!(text.iter().all(|byte| printable(*byte)), "{text:02x?}");
            }
            OutputKind::Detach => {
                assert!(self.attached, "left twice");
                self.attached = false;
                // The ring begins anew.
                self.counters.ring_units_peak = 0;
            }
            OutputKind::Attach => {
                assert!(!self.attached, "came back twice");
                self.attached = true;
            }
            OutputKind::Eeprom(image) => {
                let read = make(self.start).with_eeprom(&image[..]);
                assert_eq!(
                    read.map(|board| *board.eeprom()),
                    Ok(**image),
                    "what was saved"
                );
                self.saved = Some(image.clone());
            }
            OutputKind::Connect | OutputKind::Close => {}
        }
    }

    fn check_counters(&mut self) {
        let counters = self.board.counters();
        assert_eq!(
            counters,
            self.other.counters(),
            "counters of the same calls"
        );
        assert_eq!(counters.forwarded, self.departures, "frames that left");
        assert!(counters.ring_units_peak <= RING_UNITS, "{counters:?}");
        let in_flight = self.in_flight(&counters);
        assert!(
            in_flight <= MOST_IN_FLIGHT || self.typed > 0,
            "{in_flight}: {counters:?}"
        );
        let before = &self.counters;
        let pairs = [
            (before.received, counters.received),
            (before.forwarded, counters.forwarded),
            (before.bridged, counters.bridged),
            (before.dropped_buffer, counters.dropped_buffer),
            (before.dropped_switch, counters.dropped_switch),
            (before.dropped_return, counters.dropped_return),
            (before.pauses_sent, counters.pauses_sent),
            (before.pauses_received, counters.pauses_received),
            (before.dropped_transmit, counters.dropped_transmit),
            (before.dropped_policy, counters.dropped_policy),
            (before.dropped_size, counters.dropped_size),
            (before.dropped_flow, counters.dropped_flow),
            (before.missed, counters.missed),
            (before.processed, counters.processed),
            (before.searches, counters.searches),
            (before.entries_examined, counters.entries_examined),
            (before.ring_units_peak, counters.ring_units_peak),
        ];
        assert!(
            pairs.iter().all(|(old, new)| old <= new),
            "{before:?} {counters:?}"
        );
        self.counters = counters;
    }

    /// Frames that were received and are neither done nor lost.
    fn in_flight(&self, counters: &Counters) -> u64 {
        let gone = counters.processed
            + counters.dropped_buffer
            + counters.dropped_switch
            + counters.pauses_received
            + counters.bridged
            + self.ignored;
        assert!(gone <= counters.received, "{counters:?}");
        counters.received - gone
    }

    fn check_table(&self) {
        let flows = self.board.flows();
        assert!(flows.len() <= ENTRIES, "{} entries", flows.len());
        assert_eq!(flows, self.other.flows(), "tables of the same calls");
        let flows = self.board.flows13();
        assert!(flows.len() <= ENTRIES_13, "{} entries of 1.3", flows.len());
        assert_eq!(flows, self.other.flows13(), "tables of the same calls");
    }

    /// Lets the board come to rest, and looks at what is left.
    ///
    /// # Panics
    /// When something does not hold, as all methods.
    pub fn rest(mut self) {
        for _ in 0..8 {
            self.wait(Duration::from_millis(10_000));
        }
        for _ in 0..100 {
            if self.board.poll_at() > Some(self.now + Duration::from_millis(200)) {
                break;
            }
            self.wait(Duration::from_millis(10_100));
        }
        let in_flight = self.in_flight(&self.counters);
        assert!(in_flight == 0 || self.typed > 0, "{:?}", self.counters);
        self.check_table();
        self.last = None;
        self.written = Vec::new();
        let held = MEMORY.current_usage().wrapping_sub(self.bytes_before);
        let most = 2 * (MOST_BYTES_AT_REST + MOST_BYTES_TYPED * self.typed as usize);
        assert!(held <= most, "two boards hold {held} bytes");
        let before = self.bytes_before;
        drop(self);
        assert_eq!(
            MEMORY.current_usage(),
            before,
            "bytes that outlive their board"
        );
    }
}
