//! How long a frame needs from the call that sends it until it is stamped at the link's other end.
//!
//! This *lead* is how long before its departure a board's frame is handed to the kernel. At first it is measured on
//! loopback; then it follows the kernel's stamps of departures, since a frame's length and what else uses the core's
//! caches change it by microseconds. Leads are learnt separately for each class of lengths and of what was sent before:
//! right behind another frame the kernel's send path is still in the caches, and behind a warm-up frame most of it is.
//! The kernel stamps a departure before it carries the frame to the other end. How long the rest of the way takes is
//! not reported, but the caches are as cold there as before the stamp, so it is taken in proportion to the first part.

use std::io;

use zodiac_firmware::{Duration, Instant};

use crate::clock::{Clock, ClockPair};
use live_host::packet_socket::{PacketSocket, ReceiveBuffer, TYPE_LOCAL_EXPERIMENTAL};

/// Frames share a lead if their lengths are in the same class; a class is this wide.
const CLASS_BYTES: usize = 256;
const CLASSES: usize = 6;
/// Longest pause since the last frame in each class of pauses; longer ones are a class of their own.
const PAUSES: [Duration; 6] = [
    Duration::from_micros(50),
    Duration::from_micros(150),
    Duration::from_micros(500),
    Duration::from_micros(1_000),
    Duration::from_micros(2_000),
    Duration::from_micros(4_000),
];
/// Number of classes of what was sent before: these pauses, longer ones, and a warm-up frame.
const PRECEDING_CLASSES: usize = PAUSES.len() + 2;
/// Time between the stamps of departure and arrival, divided by the time from the call to the former: as taps at the other
/// ends of veth pairs saw it, after pauses of 1 to 13 ms, with frames of 62 to 1516 bytes (0.7 to 1.7 us, a share of 0.17 to
/// 0.21).
const REST_OF_THE_WAY: (u64, u64) = (1, 5);
/// The lead is the median of this many newest frames, so that one that an interrupt hit does not count.
const MEDIAN_OF: usize = 9;
/// A longer time means that the kernel was interrupted; it is ignored.
const LONGEST: Duration = Duration::from_micros(30);

/// Frame that the kernel sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preceding {
    /// Another frame, this long ago.
    Frame(Duration),
    /// A warm-up frame on another interface, just now.
    WarmUp,
}

/// The leads of frames of all lengths.
#[derive(Debug, Clone)]
pub struct SendLead {
    /// By what was sent before, then by length.
    classes: [[Class; CLASSES]; PRECEDING_CLASSES],
    learns: bool,
}

#[derive(Debug, Clone, Copy)]
struct Class {
    lead: Duration,
    newest: [Duration; MEDIAN_OF],
    seen: usize,
}

impl SendLead {
    /// Returns the same lead for all frames, for ever.
    #[must_use]
    pub const fn fixed(lead: Duration) -> Self {
        Self::starting(lead, false)
    }

    /// Measured on the loopback interface, and then learnt from departures; zero at first if loopback is down or cannot be
    /// used.
    #[must_use]
    pub fn measured(clock: Clock) -> Self {
        Self::starting(measure(clock).unwrap_or(Duration::ZERO), true)
    }

    const fn starting(lead: Duration, learns: bool) -> Self {
        let class = Class {
            lead,
            newest: [Duration::ZERO; MEDIAN_OF],
            seen: 0,
        };
        Self {
            classes: [[class; CLASSES]; PRECEDING_CLASSES],
            learns,
        }
    }

    /// The lead of a frame of this length, after what was sent before it.
    #[must_use]
    pub fn of(&self, frame_bytes: usize, preceding: Preceding) -> Duration {
        let length = class(frame_bytes);
        let place = preceding.class();
        // A lead that is not learnt yet is taken from the next longer pause, else from the next shorter one.
        let longer = self.classes[place..].iter();
        let shorter = self.classes[..place].iter().rev();
        longer
            .chain(shorter)
            .map(|lengths| &lengths[length])
            .find(|class| class.seen >= MEDIAN_OF)
            .unwrap_or(&self.classes[place][length])
            .lead
    }

    /// The lead before anything was learnt from departures.
    #[must_use]
    pub const fn initial(&self) -> Duration {
        self.classes[0][0].lead
    }

    /// Returns whether leads are learnt from departures.
    #[must_use]
    pub const fn learns(&self) -> bool {
        self.learns
    }

    /// Learns from the departure stamp of `frame`, which a call at the instant `called` has sent behind `preceding`.
    /// The kernel returns the stamp at once where the link is virtual.
    pub fn observe(
        &mut self,
        socket: &PacketSocket,
        buffer: &mut ReceiveBuffer,
        clocks: ClockPair,
        (called, preceding): (Instant, Preceding),
        frame: &[u8],
    ) {
        let Some(stamp) = socket.departure(buffer) else {
            return;
        };
        let left = clocks.instant_of(stamp);
        if left >= called {
            self.add_sample(frame.len(), preceding, left.saturating_since(called));
        }
    }

    fn add_sample(&mut self, frame_bytes: usize, preceding: Preceding, departure: Duration) {
        if departure > LONGEST {
            return;
        }
        let class = &mut self.classes[preceding.class()][class(frame_bytes)];
        class.newest[class.seen % MEDIAN_OF] = departure + rest_of_the_way(departure);
        class.seen += 1;
        if class.seen >= MEDIAN_OF {
            let mut sorted = class.newest;
            sorted.sort_unstable();
            class.lead = sorted[MEDIAN_OF / 2];
        }
    }
}

const fn rest_of_the_way(before: Duration) -> Duration {
    let (share, of) = REST_OF_THE_WAY;
    Duration::from_nanos(before.as_nanos() * share / of)
}

fn class(frame_bytes: usize) -> usize {
    (frame_bytes / CLASS_BYTES).min(CLASSES - 1)
}

impl Preceding {
    fn class(self) -> usize {
        match self {
            Self::Frame(pause) => PAUSES.partition_point(|longest| *longest < pause),
            Self::WarmUp => PRECEDING_CLASSES - 1,
        }
    }
}

/// Returns time from the call to the stamp of the arrival, on loopback.
fn measure(clock: Clock) -> Option<Duration> {
    const ROUNDS: usize = 51;
    /// Waited in a tight loop, as between frames of a board, so that the caches are as cold as then, and not colder.
    const PAUSE: Duration = Duration::from_micros(300);
    let sender = PacketSocket::open("lo", "the program").ok()?;
    let receiver = PacketSocket::open("lo", "the program").ok()?;
    let mut buffer = ReceiveBuffer::new();
    let mut frame = vec![0; 302];
    frame[12..14].copy_from_slice(&TYPE_LOCAL_EXPERIMENTAL);
    let mut once = |round: usize| -> io::Result<Option<u64>> {
        frame[14..22].copy_from_slice(&round.to_be_bytes());
        let until = clock.now() + PAUSE;
        while clock.now() < until {
            std::hint::spin_loop();
        }
        let pair = clock.pair();
        sender.send_stamped(&frame)?;
        while let Some(received) = receiver.receive(&mut buffer)? {
            if received.data == frame {
                let arrived = received.stamp_realtime_ns;
                return Ok(Some(arrived.saturating_sub(pair.realtime_ns)));
            }
        }
        Ok(None)
    };
    let leads = (0..ROUNDS)
        .filter_map(|round| once(round).ok().flatten())
        .collect();
    median(leads)
}

fn median(mut nanos: Vec<u64>) -> Option<Duration> {
    nanos.sort_unstable();
    nanos
        .get(nanos.len() / 2)
        .copied()
        .map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    const LONG: Preceding = after(5_000);

    const fn after(micros: u64) -> Preceding {
        Preceding::Frame(us(micros))
    }

    #[test]
    fn follows_the_median_of_what_it_is_told_by_length() {
        let mut lead = SendLead::starting(us(2), true);
        for micros in 0..8 {
            lead.add_sample(60, LONG, us(micros));
        }
        assert_eq!(lead.of(60, LONG), us(2), "too few");
        lead.add_sample(60, LONG, us(8));
        let learnt = |micros| us(micros) + rest_of_the_way(us(micros));
        assert_eq!(lead.of(60, LONG), learnt(4), "and the rest of the way");
        assert_eq!(lead.of(1514, LONG), us(2), "another length");
        for _ in 0..MEDIAN_OF {
            lead.add_sample(1514, LONG, us(5));
            lead.add_sample(1514, LONG, us(31));
        }
        assert_eq!(lead.of(1514, LONG), learnt(5), "interruptions do not count");
        assert_eq!(lead.of(4000, LONG), learnt(5), "the longest are one class");
    }

    #[test]
    fn knows_how_long_ago_the_last_frame_left() {
        let mut lead = SendLead::starting(us(2), true);
        for _ in 0..MEDIAN_OF {
            lead.add_sample(60, LONG, us(9));
        }
        let learnt = |micros| us(micros) + rest_of_the_way(us(micros));
        assert_eq!(
            lead.of(60, after(60)),
            learnt(9),
            "not learnt: as after a longer pause"
        );
        for _ in 0..MEDIAN_OF {
            lead.add_sample(60, after(60), us(3));
        }
        assert_eq!(lead.of(60, after(100)), learnt(3));
        assert_eq!(
            lead.of(60, after(10)),
            learnt(3),
            "the nearest that is learnt"
        );
        assert_eq!(lead.of(60, after(400)), learnt(9));
        for _ in 0..MEDIAN_OF {
            lead.add_sample(60, Preceding::WarmUp, us(5));
        }
        assert_eq!(lead.of(60, Preceding::WarmUp), learnt(5));
        assert_eq!(lead.of(60, LONG), learnt(9), "unchanged");
    }

    #[test]
    fn a_configured_lead_stays() {
        let lead = SendLead::fixed(us(3));
        assert!(!lead.learns());
        assert_eq!(lead.of(60, LONG), us(3));
    }
}
