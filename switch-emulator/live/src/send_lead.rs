//! How long a frame needs from the call that sends it until it is stamped.

use std::io;

use zodiac_firmware::Duration;

use crate::clock::Clock;
use crate::packet_socket::{PacketSocket, ReceiveBuffer};

/// Measures how long after the call to send a frame an interface's peer stamps it, on the loopback interface: the
/// constant part of the way, to be subtracted from departures. `None` if loopback is down or not to be had.
#[must_use]
pub fn measure_send_lead(clock: Clock) -> Option<Duration> {
    const ROUNDS: usize = 101;
    const TYPE_LOCAL_EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
    let sender = PacketSocket::open("lo", "the program").ok()?;
    let receiver = PacketSocket::open("lo", "the program").ok()?;
    let mut buffer = ReceiveBuffer::new();
    let mut frame = vec![0; 302];
    frame[12..14].copy_from_slice(&TYPE_LOCAL_EXPERIMENTAL);
    let mut once = |round: usize| -> io::Result<Option<u64>> {
        frame[14..22].copy_from_slice(&round.to_be_bytes());
        let pair = clock.pair();
        sender.send(&frame)?;
        while let Some(received) = receiver.receive(&mut buffer)? {
            if received.data == frame {
                return Ok(Some(
                    received.stamp_realtime_ns.saturating_sub(pair.realtime_ns),
                ));
            }
        }
        Ok(None)
    };
    let mut leads: Vec<u64> = (0..ROUNDS)
        .filter_map(|round| once(round).ok().flatten())
        .collect();
    leads.sort_unstable();
    leads
        .get(leads.len() / 2)
        .copied()
        .map(Duration::from_nanos)
}
