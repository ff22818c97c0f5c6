//! Queue disciplines: what waits before a port, and what leaves next.
//!
//! A [`Discipline`] knows no wire: who owns it asks for a frame whenever the wire is free, and says what time it is. Calls
//! take non-decreasing instants; extra ones are harmless.
//!
//! | module | what it is |
//! |---|---|
//! | `fifo` | one queue, no rate |
//! | `htb` | hierarchical token bucket: classes wait for tokens, and borrow those of their ancestors |
//! | `leaf` | the queue of such a class: by choice what would leave too late is dropped, or what `CoDel` picks |
//! | `priority` | strict priority, with the time that switch chips let pass between two choices |
//! | `trtcm` | two-rate three-colour marking: what finds no tokens is dropped |
//! | `credit` | the token bucket of these two, whose level may fall below zero |
//! | `config` | their settings |

use std::collections::VecDeque;
use std::fmt;

mod config;
mod credit;
mod fifo;
mod htb;
mod leaf;
mod priority;
mod trtcm;

pub use config::{
    ClassConfig, DropsConfig, HtbConfig, PolicerConfig, SchedulerConfig, TrtcmConfig,
};
use fifo::Fifo;
use htb::Htb;
pub(crate) use priority::StrictPriority;
use trtcm::Trtcm;

/// Length of an Ethernet header, which an IP packet has before it.
const ETHERNET_HEADER_BYTES: u64 = 14;

/// A frame that waits, without frame check sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueuedFrame {
    pub(crate) data: Vec<u8>,
}

impl QueuedFrame {
    /// Length as the kernel counts it: from the Ethernet header on, without frame check sequence.
    fn frame_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Length of the IP packet in it.
    fn packet_bytes(&self) -> u64 {
        self.frame_bytes().saturating_sub(ETHERNET_HEADER_BYTES)
    }
}

/// What a discipline threw away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DropCounters {
    /// There was no room.
    pub(crate) full: u64,
    /// There was room: without tokens, too late, or picked by `CoDel`.
    pub(crate) policed: u64,
}

/// What waits before a port, and in which order it leaves.
pub(crate) trait Discipline: fmt::Debug + Send {
    /// A frame for the queue with this number; a number that there is not means the first queue.
    fn enqueue(&mut self, now_ns: u64, queue: u32, frame: QueuedFrame);
    /// The frame that leaves now.
    fn dequeue(&mut self, now_ns: u64) -> Option<QueuedFrame>;
    /// After [`Discipline::dequeue`] gave nothing: when to ask again, unless a frame comes before.
    fn wake_ns(&self) -> Option<u64>;
    /// Whether it gives nothing before another frame comes; no harm in false.
    fn is_idle(&self) -> bool {
        false
    }
    /// What it has thrown away.
    fn dropped(&self) -> DropCounters;
    /// What waits in a queue, and in all; disciplines that share no memory need not tell.
    fn occupancy(&self, _queue: u32) -> Occupancy {
        Occupancy::default()
    }
    /// A frame found no room in a memory that this discipline shares with others.
    fn refuse(&mut self) {}
}

/// What waits before a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// In one queue.
    pub(crate) queue_bytes: u64,
    /// In all queues of the port.
    pub(crate) all_bytes: u64,
}

/// A queue that holds so many frames at most.
#[derive(Debug)]
struct BoundedQueue {
    frames: VecDeque<QueuedFrame>,
    limit: usize,
}

impl BoundedQueue {
    fn new(limit_frames: u64) -> Self {
        Self {
            frames: VecDeque::new(),
            limit: usize::try_from(limit_frames).unwrap_or(usize::MAX),
        }
    }

    /// Whether there was room.
    fn push(&mut self, frame: QueuedFrame) -> bool {
        let fits = self.frames.len() < self.limit;
        if fits {
            self.frames.push_back(frame);
        }
        fits
    }
}

/// The discipline that these settings describe; without any it is one queue.
///
/// # Errors
/// What is wrong with them, and how to mend it.
pub(crate) fn discipline(config: Option<&SchedulerConfig>) -> Result<Box<dyn Discipline>, String> {
    Ok(match config {
        None => Box::new(Fifo::new(config::DEFAULT_LIMIT_FRAMES)),
        Some(SchedulerConfig::Htb(config)) => Box::new(Htb::new(config)?),
        Some(SchedulerConfig::Trtcm(config)) => Box::new(Trtcm::new(config)?),
    })
}
