//! Telemetry of the data thread: one bounded, wait-free channel and a few atomic numbers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};
use zodiac_firmware::{Counters, Event, PortNumber};

use live_host::histogram::Histogram;
use live_host::stall::Stall;

/// Messages that fit in the channel: seconds of traffic, should the reading thread not get a core.
const CHANNEL_MESSAGES: usize = 1 << 16;

/// A message from the data thread. Instants are `CLOCK_REALTIME` nanoseconds.
#[derive(Debug)]
pub enum TelemetryMessage {
    /// All boards run.
    Running {
        /// How the data thread is scheduled.
        scheduling: String,
        /// Lead of departures.
        send_lead_ns: u64,
    },
    /// Something for the log and the report.
    Note {
        /// When.
        at_ns: u64,
        /// Whose, as index, or `None` for the program's own.
        board: Option<usize>,
        /// The event.
        note: Note,
    },
    /// A board on a network of its own has gained or lost its connection.
    Connection {
        /// When.
        at_ns: u64,
        /// Whose.
        board: usize,
        /// Whether it stands from now on.
        connected: bool,
    },
    /// The thread did not run, or got a frame late.
    Stall {
        /// Since when.
        start_ns: u64,
        /// The stall.
        stall: Stall,
    },
    /// A frame left; only with a trace.
    Departure(TraceRecord),
    /// Answer to [`Shared::ask_for_counters`], and once at the end.
    Counters {
        /// Whose.
        board: usize,
        /// Since power-up.
        counters: Counters,
        /// Its entries, if reports have them ([`flow_statistics`](crate::flow_statistics)).
        flow_statistics: Vec<Vec<u8>>,
    },
}

/// Text of a note. Events are formatted by the reader.
#[derive(Debug)]
pub enum Note {
    /// From the firmware.
    Firmware(Event),
    /// From the program.
    Text(String),
}

/// One line of the trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceRecord {
    /// Board's index.
    pub board: usize,
    /// Port by which the frame left.
    pub port: PortNumber,
    /// Number found in the frame, 0 if it is too short.
    pub sequence: u32,
    /// When it should have left.
    pub intended_ns: u64,
    /// When it was handed to the kernel, plus the send lead: when it left as far as the program can tell.
    pub left_ns: u64,
    /// Whether a stall was in the way.
    pub in_stall: bool,
}

/// Numbers that both sides see at any time.
#[derive(Debug, Default)]
pub struct Shared {
    /// Set to end the data thread.
    pub stop: AtomicBool,
    /// Intended against actual departure, outside stalls.
    pub lateness: Histogram,
    /// Lateness of departures that a stall delayed.
    pub lateness_in_stalls: Histogram,
    /// Durations of the data thread's passes.
    pub passes: Histogram,
    /// How many stalls.
    pub stalls: AtomicU64,
    /// The longest, in nanoseconds.
    pub worst_stall_ns: AtomicU64,
    /// Messages that found the channel full.
    pub lost_messages: AtomicU64,
    counters_wanted: AtomicBool,
}

impl Shared {
    /// Asks the data thread for its boards' counters.
    pub fn ask_for_counters(&self) {
        self.counters_wanted.store(true, Relaxed);
    }

    /// Returns whether somebody has asked since the last call.
    pub fn counters_wanted(&self) -> bool {
        // A plain load first: it costs nothing as long as nobody asks.
        self.counters_wanted.load(Relaxed) && self.counters_wanted.swap(false, Relaxed)
    }
}

/// The data thread's end.
#[derive(Debug)]
pub struct Telemetry {
    /// Numbers for everybody.
    pub shared: Arc<Shared>,
    channel: Producer<TelemetryMessage>,
}

impl Telemetry {
    /// Both ends.
    #[must_use]
    pub fn channel(shared: Arc<Shared>) -> (Self, Consumer<TelemetryMessage>) {
        let (channel, reader) = RingBuffer::new(CHANNEL_MESSAGES);
        (Self { shared, channel }, reader)
    }

    /// Sends a message; never waits. If there is no room it is lost and counted.
    pub fn send(&mut self, message: TelemetryMessage) {
        if self.channel.push(message).is_err() {
            self.shared.lost_messages.fetch_add(1, Relaxed);
        }
    }

    /// Counts and reports a stall.
    pub fn stall(&mut self, start_ns: u64, stall: Stall) {
        self.shared.stalls.fetch_add(1, Relaxed);
        self.shared
            .worst_stall_ns
            .fetch_max(stall.duration.as_nanos(), Relaxed);
        self.send(TelemetryMessage::Stall { start_ns, stall });
    }
}
