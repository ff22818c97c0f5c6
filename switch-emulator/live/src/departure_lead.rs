//! Lead of departures: how long before its departure a frame is handed to the kernel, by the kind of port and the
//! preceding frame.

use zodiac_firmware::{Duration, Instant};

use crate::cache_warmer::{CacheWarmer, WARM_FOR};
use crate::clock::{Clock, ClockPair};
use crate::send_lead::{Preceding, SendLead};
use live_host::packet_socket::{PacketSocket, ReceiveBuffer};

/// Departure stamps are requested only if nothing else leaves for this long: reading one takes a microsecond.
const STAMP_GAP: Duration = Duration::from_micros(30);

/// Leads, and the last use of the kernel's send path that they depend on.
#[derive(Debug)]
pub struct DepartureLead {
    /// Leads of data ports and of native ports: behind the latter is this machine's own TCP, with a longer path.
    leads: [SendLead; 2],
    /// `None` if no warm-up frames are sent.
    cache_warmer: Option<CacheWarmer>,
    /// When the last frame was to leave.
    last_departure: Instant,
    /// When a warm-up frame was last sent.
    warmed: Instant,
}

/// Lead of one departure.
#[derive(Debug, Clone, Copy)]
pub struct Lead {
    /// Time between the call to the kernel and the departure.
    pub time: Duration,
    /// Whether to request a departure stamp.
    pub is_stamped: bool,
    native: usize,
    preceding: Preceding,
}

impl DepartureLead {
    /// Starts as if a frame had left at `now`. Warm-up frames are sent only for a lone board: with several, they would
    /// delay another one's departure.
    #[must_use]
    pub fn new(lead: SendLead, one_board: bool, now: Instant) -> Self {
        Self {
            cache_warmer: (lead.learns() && one_board)
                .then(CacheWarmer::open)
                .flatten(),
            leads: [lead.clone(), lead],
            last_departure: now,
            warmed: now,
        }
    }

    /// The lead on data ports before anything was learnt from departures.
    #[must_use]
    pub const fn initial(&self) -> Duration {
        self.leads[0].initial()
    }

    /// Sends a warm-up frame before the next departure, at `next_at`, when it is time to. Call it in every iteration.
    pub fn warm_cache(&mut self, next_at: Instant, clock: Clock) {
        if let Some(cache_warmer) = &self.cache_warmer {
            let now = clock.now();
            if cache_warmer.send_before(next_at, self.last_departure.max(self.warmed), now) {
                self.warmed = now;
            }
        }
    }

    /// The lead of a frame that leaves at `at`, from now on the last departure; `next_at`: when the next leaves, if known.
    pub fn of(
        &mut self,
        native: bool,
        frame_bytes: usize,
        at: Instant,
        next_at: Option<Instant>,
    ) -> Lead {
        let preceding = if self.warmed > self.last_departure && self.warmed + WARM_FOR >= at {
            Preceding::WarmUp
        } else {
            Preceding::Frame(at.saturating_since(self.last_departure))
        };
        self.last_departure = at;
        let native = usize::from(native);
        let leads = &self.leads[native];
        Lead {
            time: leads.of(frame_bytes, preceding),
            is_stamped: leads.learns() && next_at.is_none_or(|next| next > at + STAMP_GAP),
            native,
            preceding,
        }
    }

    /// Learns from a frame with a stamp, which a call at the instant `called` has sent.
    pub fn observe(
        &mut self,
        lead: Lead,
        socket: &PacketSocket,
        buffer: &mut ReceiveBuffer,
        clocks: ClockPair,
        called: Instant,
        frame: &[u8],
    ) {
        self.leads[lead.native].observe(socket, buffer, clocks, (called, lead.preceding), frame);
    }
}
