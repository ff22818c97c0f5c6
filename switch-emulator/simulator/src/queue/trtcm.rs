//! Two-rate three-colour marking that drops (RFC 4115, colour-blind), as the policer of OVS-DPDK does.
//!
//! All queues of a port wait together for the next poll. It comes `poll_ns` after the first frame that waits, or after the
//! last poll if that left some. A poll takes so many frames at most. Each is checked against the
//! buckets of its queue: it passes green if the committed bucket holds it, else yellow if the excess bucket does, else it
//! is red and dropped. What passes waits for the wire. Lengths count the IP packet.

use std::collections::VecDeque;

use super::config::TrtcmConfig;
use super::credit::Credit;
use super::{BoundedQueue, Discipline, DropCounters, QueuedFrame};

#[derive(Debug)]
struct Policer {
    number: u32,
    committed: Credit,
    excess: Credit,
}

impl Policer {
    /// Returns whether a packet passes; takes its tokens if so.
    fn passes(&mut self, now_ns: u64, bytes: u64) -> bool {
        for bucket in [&mut self.committed, &mut self.excess] {
            if bucket.can_ever_hold(bytes) && bucket.holds(now_ns, bytes) {
                bucket.take(now_ns, bytes);
                return true;
            }
        }
        false
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Trtcm {
    policers: Vec<Policer>,
    /// Frames that wait for a poll, each with its instant of arrival and the index of its policer.
    waiting: VecDeque<(u64, usize, QueuedFrame)>,
    limit_frames: usize,
    transmit: BoundedQueue,
    group_frames: u64,
    poll_ns: u64,
    /// The next poll, or `None` if none waits.
    next_poll_ns: Option<u64>,
    dropped: DropCounters,
}

impl Trtcm {
    /// # Errors
    /// Fault in the settings, and how to mend it.
    pub(super) fn new(config: &TrtcmConfig) -> Result<Self, String> {
        config.check()?;
        Ok(Self {
            policers: config
                .policers
                .iter()
                .map(|policer| Policer {
                    number: policer.queue,
                    committed: Credit::new(policer.cir_bps, policer.cbs_bytes),
                    excess: Credit::new(policer.eir_bps, policer.ebs_bytes),
                })
                .collect(),
            waiting: VecDeque::new(),
            limit_frames: config.limit_frames as usize,
            transmit: BoundedQueue::new(config.transmit_frames),
            group_frames: config.group_frames,
            poll_ns: config.poll_ns,
            next_poll_ns: None,
            dropped: DropCounters::default(),
        })
    }

    /// Does the polls until `now_ns`.
    fn poll(&mut self, now_ns: u64) {
        while let Some(poll_ns) = self.next_poll_ns.filter(|poll_ns| *poll_ns <= now_ns) {
            for _ in 0..self.group_frames {
                let due = self
                    .waiting
                    .front()
                    .is_some_and(|(at_ns, ..)| *at_ns <= poll_ns);
                let Some((_, place, frame)) = due.then(|| self.waiting.pop_front()).flatten()
                else {
                    break;
                };
                if !self.policers[place].passes(poll_ns, frame.packet_bytes()) {
                    self.dropped.policed += 1;
                } else if !self.transmit.push(frame) {
                    self.dropped.full += 1;
                }
            }
            // A frame may have come after this poll's instant, before it was done: the next poll counts from its arrival.
            let first = self.waiting.front();
            self.next_poll_ns = first.map(|(at_ns, ..)| poll_ns.max(*at_ns) + self.poll_ns);
        }
    }
}

impl Discipline for Trtcm {
    fn enqueue(&mut self, now_ns: u64, queue: u32, frame: QueuedFrame) {
        // A poll at this very instant comes after the frame.
        if let Some(before_ns) = now_ns.checked_sub(1) {
            self.poll(before_ns);
        }
        let named = self.policers.iter().position(|one| one.number == queue);
        if self.waiting.len() < self.limit_frames {
            self.next_poll_ns.get_or_insert(now_ns + self.poll_ns);
            self.waiting
                .push_back((now_ns, named.unwrap_or_default(), frame));
        } else {
            self.dropped.full += 1;
        }
    }

    fn dequeue(&mut self, now_ns: u64) -> Option<QueuedFrame> {
        self.poll(now_ns);
        self.transmit.frames.pop_front()
    }

    fn wake_ns(&self) -> Option<u64> {
        self.next_poll_ns
    }

    fn dropped(&self) -> DropCounters {
        self.dropped
    }
}

#[cfg(test)]
mod tests;
