//! Keeps the kernel's way of a frame in the caches: after a pause a frame goes ahead by which nobody is reached.
//!
//! A frame that leaves after milliseconds without any takes three to four times as long through the kernel as one right
//! behind another, and how long exactly differs by microseconds from frame to frame. A board's departures would be off by
//! that. So a little before such a departure a frame of a local experiment (`EtherType` 0x88b5) is sent on the loopback
//! interface, on which nothing but a tap of one's own sees it.

use socket2::Socket;
use zodiac_firmware::{Duration, Instant};

use crate::packet_socket;

/// After a shorter pause the way is still in the caches.
const PAUSE: Duration = Duration::from_micros(300);
/// What the frame that goes ahead may take, at worst.
const ROOM: Duration = Duration::from_micros(28);
/// Sent sooner it would be forgotten again.
const SOONEST: Duration = Duration::from_micros(60);
const TYPE_LOCAL_EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const FRAME_BYTES: usize = 60;

/// Sends the frames that go ahead.
#[derive(Debug)]
pub struct WarmUp {
    /// None if there is no loopback interface to be had.
    socket: Option<Socket>,
    frame: [u8; FRAME_BYTES],
    last: Option<Instant>,
}

impl WarmUp {
    /// Ready if `wanted`, and if the loopback interface can be had.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        let mut frame = [0; FRAME_BYTES];
        frame[12..14].copy_from_slice(&TYPE_LOCAL_EXPERIMENTAL);
        Self {
            socket: wanted.then(|| packet_socket::sender("lo").ok()).flatten(),
            frame,
            last: None,
        }
    }

    /// Whether there are any to send.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.socket.is_some()
    }

    /// Sends one if it is now the time for it, before a departure at `at` that follows a pause since `last_departure`.
    pub fn before(&mut self, at: Instant, last_departure: Instant, now: Instant) {
        let Some(socket) = &self.socket else {
            return;
        };
        if is_time(at, self.last_gone(last_departure), now) {
            self.last = Some(now);
            // A loopback interface that is down refuses the frame, having gone most of the way.
            let _ = socket.send_with_flags(&self.frame, libc::MSG_DONTWAIT);
        }
    }

    /// When the way was last gone, if the last frame left at `last_departure`.
    #[must_use]
    pub fn last_gone(&self, last_departure: Instant) -> Instant {
        self.last
            .map_or(last_departure, |last| last.max(last_departure))
    }
}

fn is_time(at: Instant, last: Instant, now: Instant) -> bool {
    let left = at.saturating_since(now);
    at.saturating_since(last) > PAUSE && left >= ROOM && left <= SOONEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_ahead_of_a_departure_after_a_pause() {
        let us = |micros: u64| Instant::from_nanos(micros * 1_000);
        assert!(is_time(us(1_000), us(600), us(950)));
        assert!(!is_time(us(1_000), us(800), us(950)), "no pause");
        assert!(!is_time(us(1_000), us(600), us(900)), "too soon");
        assert!(!is_time(us(1_000), us(600), us(980)), "too late");
        assert!(
            !is_time(us(1_000), us(955), us(960)),
            "one has gone already"
        );
    }

    #[test]
    fn without_one_the_last_departure_counts() {
        let mut idle = WarmUp::new(false);
        let us = |micros: u64| Instant::from_nanos(micros * 1_000);
        idle.before(us(1_000), us(600), us(950));
        assert_eq!(idle.last_gone(us(600)), us(600));
    }
}
