//! Queue disciplines of ports.
//!
//! A [`Discipline`] does not model the wire: its owner dequeues a frame whenever the wire is free, and passes the time
//! in. Calls take non-decreasing instants; extra calls are harmless.
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

/// A queued frame, without frame check sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueuedFrame {
    pub(crate) data: Vec<u8>,
}

impl QueuedFrame {
    /// Length as the kernel counts it: from the Ethernet header on, without frame check sequence.
    fn frame_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Returns the length of the IP packet in it.
    fn packet_bytes(&self) -> u64 {
        self.frame_bytes().saturating_sub(ETHERNET_HEADER_BYTES)
    }
}

/// Frames that a discipline has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DropCounters {
    /// There was no room.
    pub(crate) full: u64,
    /// There was room: without tokens, too late, or picked by `CoDel`.
    pub(crate) policed: u64,
}

/// Queue discipline of a port.
pub(crate) trait Discipline: fmt::Debug + Send {
    /// Adds a frame to the queue with this number, or to the first queue if there is none.
    fn enqueue(&mut self, now_ns: u64, queue: u32, frame: QueuedFrame);
    /// Removes the frame that leaves now.
    fn dequeue(&mut self, now_ns: u64) -> Option<QueuedFrame>;
    /// Returns when to dequeue again after [`Discipline::dequeue`] returned `None`, unless a frame comes before.
    fn wake_ns(&self) -> Option<u64>;
    /// Returns whether it yields nothing before another frame comes; `false` is always correct.
    fn is_idle(&self) -> bool {
        false
    }
    /// Returns the drop counters.
    fn dropped(&self) -> DropCounters;
    /// Returns the occupancy of a queue and of the port, each queue of which has `reserved_bytes` of its own;
    /// disciplines that share no memory need not.
    fn occupancy(&self, _queue: u32, _reserved_bytes: u64) -> Occupancy {
        Occupancy::default()
    }
    /// A frame found no room in a memory that this discipline shares with others.
    fn refuse(&mut self) {}
}

/// Occupancy of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// In one queue.
    pub(crate) queue_bytes: u64,
    /// In all queues of the port, beyond what each has reserved.
    pub(crate) shared_bytes: u64,
}

/// A FIFO queue with a limit in frames.
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

    /// Appends a frame. Returns whether there was room.
    fn push(&mut self, frame: QueuedFrame) -> bool {
        let fits = self.frames.len() < self.limit;
        if fits {
            self.frames.push_back(frame);
        }
        fits
    }
}

/// Creates the discipline that these settings describe; one FIFO queue without settings.
///
/// # Errors
/// Fault in the settings, and how to mend it.
pub(crate) fn discipline(config: Option<&SchedulerConfig>) -> Result<Box<dyn Discipline>, String> {
    Ok(match config {
        None => Box::new(Fifo::new(config::DEFAULT_LIMIT_FRAMES)),
        Some(SchedulerConfig::Htb(config)) => Box::new(Htb::new(config)?),
        Some(SchedulerConfig::Trtcm(config)) => Box::new(Trtcm::new(config)?),
    })
}
