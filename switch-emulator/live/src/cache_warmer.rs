//! Cache warming of the kernel's send path: after a pause, a *warm-up frame* is sent before a departure. It reaches
//! nobody.
//!
//! A frame that leaves after milliseconds without any takes three to four times as long through the kernel as one right
//! behind another, and how long exactly differs by microseconds from frame to frame. A board's departures would be off by
//! that. So shortly before such a departure a frame with the `EtherType` of local experiments (0x88b5) is sent on the
//! loopback interface, where nobody sees it but a tap of one's own.

use socket2::Socket;
use zodiac_firmware::{Duration, Instant};

use live_host::packet_socket::{self, TYPE_LOCAL_EXPERIMENTAL};

/// After a shorter pause the send path is still in the caches.
const COLD_AFTER: Duration = Duration::from_micros(300);
/// Longest time that sending a warm-up frame may take.
const MAX_SEND_TIME: Duration = Duration::from_micros(28);
/// A warm-up frame is sent at most this long before a departure; sooner, the caches would have lost the path again.
pub const WARM_FOR: Duration = Duration::from_micros(60);
const FRAME_BYTES: usize = 60;

/// Sends the warm-up frames.
#[derive(Debug)]
pub struct CacheWarmer {
    socket: Socket,
    frame: [u8; FRAME_BYTES],
}

impl CacheWarmer {
    /// `None` if there is no loopback interface to be had.
    #[must_use]
    pub fn open() -> Option<Self> {
        let mut frame = [0; FRAME_BYTES];
        frame[12..14].copy_from_slice(&TYPE_LOCAL_EXPERIMENTAL);
        let socket = packet_socket::sender("lo").ok()?;
        Some(Self { socket, frame })
    }

    /// Sends one if it is time for it, before a departure at `at`, with the send path last used at `last`. Returns
    /// whether it has.
    #[must_use]
    pub fn send_before(&self, at: Instant, last: Instant, now: Instant) -> bool {
        let goes = is_time(at, last, now);
        if goes {
            // A loopback interface that is down refuses the frame, having gone most of the way.
            let _ = self.socket.send_with_flags(&self.frame, libc::MSG_DONTWAIT);
        }
        goes
    }
}

fn is_time(at: Instant, last: Instant, now: Instant) -> bool {
    let left = at.saturating_since(now);
    at.saturating_since(last) > COLD_AFTER && left >= MAX_SEND_TIME && left <= WARM_FOR
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
}
