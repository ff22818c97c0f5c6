//! Real time as a data thread keeps it: when frames arrived, departures at their instants, rests, and stalls of the
//! host.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use zodiac_firmware::{Duration, Instant, PortNumber};

use crate::clock::{Clock, ClockPair};
use crate::departure_lead::DepartureLead;
use crate::send_lead::SendLead;
use crate::telemetry::{Note, Telemetry, TelemetryMessage, TraceRecord};
use crate::timer_queue::TimerQueue;
use live_host::packet_socket::{PacketSocket, ReceiveBuffer};
use live_host::stall::StallWatch;

/// A departure so near is waited for in a tight loop; the kernel's send path and one iteration of the outer loop
/// together take less.
const SPIN: Duration = Duration::from_micros(16);
/// With nothing due for so long the thread rests a little: a core on which a real-time thread never sleeps starves the
/// kernel's own threads there, and with them other programs. Whatever arrives meanwhile is stamped by the kernel, and no
/// frame leaves sooner than 30 us after the pass that finds it.
const QUIET: Duration = Duration::from_micros(50);
/// Shortest rest; the kernel adds some microseconds. A longer one (`process.rest_us`) ends this much before `QUIET`.
pub const LEAST_REST: Duration = Duration::from_micros(10);
/// How long the relation between the two clocks is taken as constant.
const PAIR_VALID: Duration = Duration::from_millis(1);

/// How a data thread keeps time.
#[derive(Debug)]
pub struct DataThreadTiming {
    /// A longer gap between two looks at the clock is a stall.
    pub stall_threshold: Duration,
    /// How much before its departure a frame is handed to the kernel.
    pub send_lead: SendLead,
    /// Longest time for which the thread sleeps if nothing is due; at least [`LEAST_REST`].
    pub longest_rest: Duration,
    /// Place of the sequence number in frames, if departures are traced.
    pub trace_offset: Option<usize>,
}

/// The clocks of a data thread, and what is due by them.
#[derive(Debug)]
pub struct RealTime<T> {
    clock: Clock,
    pair: ClockPair,
    watch: StallWatch,
    /// A frame that came before this instant and was not read yet is held back by the host, not by this thread's other
    /// work. The instant is the beginning of the last pass that left no frame unread, or the end of a rest after it, less
    /// the time by which the rest was meant to be longer than `LEAST_REST`.
    emptied: Instant,
    /// Pending departures.
    pub outgoing: TimerQueue<T>,
    departure_lead: DepartureLead,
    longest_rest: Duration,
    trace_offset: Option<usize>,
    /// Where stalls, departures and notes go.
    pub telemetry: Telemetry,
    /// For reading frames, and the stamps of those that have left.
    pub buffer: ReceiveBuffer,
}

impl<T> RealTime<T> {
    /// Begins now. `is_lone`: no other board's departures would be delayed by warm-up frames.
    #[must_use]
    pub fn new(
        clock: Clock,
        timing: DataThreadTiming,
        is_lone: bool,
        telemetry: Telemetry,
    ) -> Self {
        let pair = clock.pair();
        Self {
            clock,
            pair,
            watch: StallWatch::new(timing.stall_threshold, pair.now),
            emptied: pair.now,
            outgoing: TimerQueue::new(),
            departure_lead: DepartureLead::new(timing.send_lead, is_lone, pair.now),
            longest_rest: timing.longest_rest,
            trace_offset: timing.trace_offset,
            telemetry,
            buffer: ReceiveBuffer::new(),
        }
    }

    /// Reads the clock and checks for a stall.
    pub fn now(&mut self) -> Instant {
        let now = self.clock.now();
        if let Some(stall) = self.watch.observe(now) {
            self.telemetry
                .stall(self.pair.realtime_of(stall.start), stall);
        }
        now
    }

    /// Returns the time of this instant by `CLOCK_REALTIME`.
    #[must_use]
    pub fn realtime_ns(&self, at: Instant) -> u64 {
        self.pair.realtime_of(at)
    }

    /// Compares the two clocks again when it is time to, and returns whether it did.
    pub fn compare_clocks(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_since(self.pair.now) > PAIR_VALID;
        if is_due {
            self.pair = self.clock.pair();
        }
        is_due
    }

    /// Reports that the thread runs, and how it is scheduled.
    pub fn report_running(&mut self, scheduling: String) {
        self.telemetry.send(TelemetryMessage::Running {
            scheduling,
            send_lead_ns: self.departure_lead.initial().as_nanos(),
        });
    }

    /// The pass that began at `now` has left no frame unread.
    pub fn emptied(&mut self, now: Instant) {
        self.emptied = now;
    }

    /// Returns when a frame arrived that the kernel has stamped, for a look at it now.
    pub fn arrived(&mut self, stamp_realtime_ns: u64) -> Instant {
        let now = self.clock.now();
        // The wall clock may have been set since the stamp: nothing arrives from the future.
        let stamp = self.pair.instant_of(stamp_realtime_ns).min(now);
        if let Some(stall) = self.watch.delivered(stamp, self.emptied, now) {
            self.telemetry.stall(stamp_realtime_ns, stall);
        }
        stamp
    }

    /// Returns whether something leaves so soon that it is waited for.
    pub fn is_due(&mut self) -> bool {
        let now = self.now();
        self.outgoing.next_at().is_some_and(|at| at <= now + SPIN)
    }

    /// The next that leaves, if it leaves so soon that it is waited for.
    pub fn pop_due(&mut self) -> Option<(Instant, T)> {
        if self.is_due() {
            self.outgoing.pop()
        } else {
            None
        }
    }

    /// Sends a frame so that it leaves at `at`, or at once if that is over. Returns when it left.
    /// `is_native`: the port leads to this machine's own TCP.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn send(
        &mut self,
        socket: &PacketSocket,
        is_native: bool,
        at: Instant,
        frame: &[u8],
    ) -> io::Result<Instant> {
        let next_at = self.outgoing.next_at();
        let lead = self.departure_lead.of(is_native, frame.len(), at, next_at);
        let mut called = self.now();
        while called + lead.time < at {
            std::hint::spin_loop();
            called = self.now();
        }
        let result = if lead.is_stamped {
            socket.send_stamped(frame)
        } else {
            socket.send(frame)
        };
        if lead.is_stamped {
            let buffer = &mut self.buffer;
            self.departure_lead
                .observe(lead, socket, buffer, self.pair, called, frame);
        }
        // A stall within the call delays the frame, too.
        self.now();
        result.map(|()| called + lead.time)
    }

    /// Counts how late a frame was that was to leave at `at` and left at `left`, and traces it if departures are traced.
    pub fn account(
        &mut self,
        (board, port): (usize, PortNumber),
        at: Instant,
        left: Instant,
        frame: &[u8],
    ) {
        let in_stall = self.watch.excuses(at);
        let shared = &self.telemetry.shared;
        let histogram = if in_stall {
            &shared.lateness_in_stalls
        } else {
            &shared.lateness
        };
        histogram.record(left.saturating_since(at).as_nanos());
        let Some(offset) = self.trace_offset else {
            return;
        };
        let number = frame
            .get(offset..offset + 4)
            .and_then(|bytes| bytes.try_into().ok());
        self.telemetry
            .send(TelemetryMessage::Departure(TraceRecord {
                board,
                port,
                sequence: number.map_or(0, u32::from_be_bytes),
                intended_ns: self.pair.realtime_of(at),
                left_ns: self.pair.realtime_of(left),
                in_stall,
            }));
    }

    /// Ends a pass that began at `now`: what was due then has left.
    pub fn caught_up(&mut self, now: Instant) {
        if let Some(next_at) = self.outgoing.next_at() {
            self.departure_lead.warm_cache(next_at, self.clock);
        }
        self.watch.caught_up(now);
    }

    /// Sleeps briefly if nothing is due soon. Returns the time afterwards.
    pub fn rest(&mut self, now: Instant) -> Instant {
        let quiet_until = now + QUIET;
        let next_at = self.outgoing.next_at();
        if next_at.is_some_and(|at| at < quiet_until) {
            return now;
        }
        let room = next_at.map_or(self.longest_rest, |at| at.saturating_since(quiet_until));
        let wanted = self.longest_rest.min(room.max(LEAST_REST));
        std::thread::sleep(std::time::Duration::from_nanos(wanted.as_nanos()));
        let rested = self.clock.now();
        // As far as a rest was meant to be long, the host did not hold back what came meanwhile.
        let meant = now + (wanted - LEAST_REST);
        self.emptied = now + rested.saturating_since(meant);
        // A long rest is a stall only if something should have left meanwhile.
        if self.outgoing.next_at().is_none_or(|at| at > rested) {
            self.watch.rested(rested);
        }
        self.now()
    }

    /// Returns whether the thread is asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.telemetry.shared.stop.load(Relaxed)
    }

    /// Ends a pass that began at `began`: counts how long it took. Returns the time, and whether counters are wanted.
    pub fn passed(&mut self, began: Instant) -> (Instant, bool) {
        let now = self.now();
        let shared = &self.telemetry.shared;
        shared.passes.record(now.saturating_since(began).as_nanos());
        (now, shared.counters_wanted())
    }

    /// Writes a line for the log and the report about a board, or about the program.
    pub fn note(&mut self, board: Option<usize>, text: String) {
        let at_ns = self.pair.realtime_of(self.clock.now());
        self.telemetry.send(TelemetryMessage::Note {
            at_ns,
            board,
            note: Note::Text(text),
        });
    }
}
