//! Software switch on Linux: front ports of a switch chip, one link to the CPU, and a kernel that forwards.
//!
//! The model, from a frame's last bit in to its first bit out:
//!
//! 1. the switch chip, `transit`; frames of all ports share the link to the CPU, which adds a VLAN tag that names the
//!    port; more than `buffer` waiting there is lost;
//! 2. the receive ring of the CPU's MAC, counted in frames; a full ring loses what arrives;
//! 3. the wait: an idle CPU takes the first frame `interrupt` after its arrival; a busy one goes on polling, and after
//!    every `poll_budget` frames has to begin a new poll, `repoll`;
//! 4. the work, `base + per_byte x l`, whatever the table holds: the kernel looks flows up in a hash table;
//! 5. [`Interference`], which stops the CPU at any time;
//! 6. the transmit queue, the link back, the switch chip, and the front port.
//!
//! The CPU is one server for all ports, as on the Zodiac FX. With interference it guarantees no worst case.

use std::collections::VecDeque;

use zodiac_firmware::{Counters, Instant};

use super::openflow::{OpenFlowAgent, Verdict};
use super::{DeviceOutput, DeviceOutputKind, PortSet, SwitchConfig, SwitchModel};
use crate::link::{size_on_wire, Timing};

mod interference;
mod profile;

use interference::Interference;
pub use profile::{LinuxSwitchProfile, BANANA_PI_R1};

/// A frame on its way to the CPU.
#[derive(Debug)]
struct Inbound {
    /// When it has arrived in the ring.
    ring_ns: u64,
    port: u8,
    data: Vec<u8>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct LinuxSwitch {
    profile: LinuxSwitchProfile,
    agent: OpenFlowAgent,
    interference: Interference,
    wire: Timing,
    /// On the link to the CPU, in order of arrival.
    inbound: VecDeque<Inbound>,
    ring: VecDeque<Inbound>,
    inward_free_ns: u64,
    /// When the CPU takes its next frame, or `None` if none is on its way.
    take_ns: Option<u64>,
    /// Frames taken since the poll began.
    polled: u64,
    /// When each frame in the transmit queue will have been sent.
    sent_ns: VecDeque<u64>,
    outward_free_ns: u64,
    front_free_ns: Vec<u64>,
    counters: Counters,
    outputs: VecDeque<DeviceOutput>,
}

impl LinuxSwitch {
    pub(crate) fn new(profile: &LinuxSwitchProfile, config: &SwitchConfig, seed: u64) -> Self {
        let ports = profile.ports.count;
        Self {
            agent: OpenFlowAgent::new(config.mac, ports, profile.table.entries as usize),
            interference: Interference::new(&profile.interference, seed),
            wire: Timing::of_rate(profile.ports.link_rate_bps),
            inbound: VecDeque::new(),
            ring: VecDeque::new(),
            inward_free_ns: 0,
            take_ns: None,
            polled: 0,
            sent_ns: VecDeque::new(),
            outward_free_ns: 0,
            front_free_ns: vec![0; usize::from(ports)],
            counters: Counters::default(),
            outputs: VecDeque::from([DeviceOutput {
                at: Instant::ZERO,
                kind: DeviceOutputKind::Connect,
            }]),
            profile: profile.clone(),
        }
    }

    /// Returns the length of a frame on the link between switch chip and CPU.
    fn tagged_bytes(&self, frame_bytes: u64) -> u64 {
        frame_bytes + self.profile.switch_chip.tag_bytes
    }

    /// Sends a frame from the switch chip to the CPU. Returns when it has arrived there, or `None` if the chip is full.
    fn carry_inward(&mut self, now_ns: u64, frame_bytes: u64) -> Option<u64> {
        let chip = &self.profile.switch_chip;
        let ready_ns = now_ns + chip.transit_ns;
        let wait_ns = self.inward_free_ns.saturating_sub(ready_ns);
        if wait_ns > self.wire.sending_ns(chip.buffer_bytes) {
            return None;
        }
        let begin_ns = ready_ns + wait_ns;
        let bytes = self.tagged_bytes(frame_bytes);
        self.inward_free_ns = begin_ns + self.wire.slot_ns(bytes);
        Some(begin_ns + self.wire.wire_ns(bytes))
    }

    /// Puts into the ring what has arrived until `now_ns`. A frame that arrives when another one is taken still finds
    /// that one there.
    fn fill_ring(&mut self, now_ns: u64) {
        while self
            .inbound
            .front()
            .is_some_and(|frame| frame.ring_ns <= now_ns)
        {
            let Some(frame) = self.inbound.pop_front() else {
                break;
            };
            if self.ring.len() as u64 >= self.profile.cpu.ring_frames {
                self.counters.dropped_buffer += 1;
            } else {
                self.ring.push_back(frame);
            }
        }
        let waiting = self.ring.len() as u64;
        self.counters.ring_units_peak = self.counters.ring_units_peak.max(waiting);
    }

    /// The CPU takes the first frame at `now_ns` and forwards it.
    fn take(&mut self, now_ns: u64) {
        self.fill_ring(now_ns);
        let Some(frame) = self.ring.pop_front() else {
            self.take_ns = None;
            return;
        };
        self.counters.processed += 1;
        let cpu = &self.profile.cpu;
        let frame_bytes = size_on_wire(frame.data.len());
        let work_ps = cpu.base_ps + cpu.per_byte_ps * frame_bytes;
        let done_ns = self.interference.finish(now_ns, (work_ps + 500) / 1_000);
        match self.agent.look_up(now_ns, &frame.data, frame.port) {
            Verdict::Miss => self.counters.missed += 1,
            Verdict::Drop => self.counters.dropped_flow += 1,
            Verdict::Forward { ports, .. } => self.send(done_ns, ports, frame.data),
        }
        self.take_ns = self.next_take_ns(done_ns);
    }

    /// Returns when the CPU, done with a frame at `done_ns`, takes the next one.
    fn next_take_ns(&mut self, done_ns: u64) -> Option<u64> {
        let cpu = &self.profile.cpu;
        self.polled += 1;
        let next_ns = match self.ring.front().or(self.inbound.front()) {
            None => {
                self.polled = 0;
                return None;
            }
            Some(next) => next.ring_ns,
        };
        Some(if next_ns > done_ns {
            self.polled = 0;
            self.interference.finish(next_ns, cpu.interrupt_ns)
        } else if self.polled == cpu.poll_budget_frames {
            self.polled = 0;
            self.interference.finish(done_ns, cpu.repoll_ns)
        } else {
            done_ns
        })
    }

    /// The CPU hands a frame, or copies of it, to its MAC at `now_ns`.
    fn send(&mut self, now_ns: u64, ports: PortSet, mut data: Vec<u8>) {
        let frame_bytes = size_on_wire(data.len());
        let bytes = self.tagged_bytes(frame_bytes);
        let mut rest = ports.iter().peekable();
        while let Some(port) = rest.next() {
            while self.sent_ns.front().is_some_and(|at_ns| *at_ns <= now_ns) {
                self.sent_ns.pop_front();
            }
            if self.sent_ns.len() as u64 >= self.profile.cpu.transmit_frames {
                self.counters.dropped_transmit += 1;
                continue;
            }
            let begin_ns = now_ns.max(self.outward_free_ns);
            self.outward_free_ns = begin_ns + self.wire.slot_ns(bytes);
            let sent_ns = begin_ns + self.wire.wire_ns(bytes);
            self.sent_ns.push_back(sent_ns);
            // Frames come to a front port no faster than it sends them: they are longer on the way from the CPU.
            let front_free_ns = &mut self.front_free_ns[usize::from(port) - 1];
            let depart_ns = (*front_free_ns).max(sent_ns + self.profile.switch_chip.transit_ns);
            *front_free_ns = depart_ns + self.wire.slot_ns(frame_bytes);
            let copy = if rest.peek().is_none() {
                std::mem::take(&mut data)
            } else {
                data.clone()
            };
            self.outputs.push_back(DeviceOutput {
                at: Instant::from_nanos(depart_ns),
                kind: DeviceOutputKind::Frame {
                    ports: PortSet::default().with(port),
                    data: copy,
                },
            });
            self.counters.forwarded += 1;
        }
    }
}

impl SwitchModel for LinuxSwitch {
    fn agent(&mut self) -> &mut OpenFlowAgent {
        &mut self.agent
    }

    fn outputs(&mut self) -> &mut VecDeque<DeviceOutput> {
        &mut self.outputs
    }

    fn frame(&mut self, now: Instant, port: u8, data: Vec<u8>) {
        self.advance(now);
        self.counters.received += 1;
        let Some(ring_ns) = self.carry_inward(now.as_nanos(), size_on_wire(data.len())) else {
            self.counters.dropped_switch += 1;
            return;
        };
        self.inbound.push_back(Inbound {
            ring_ns,
            port,
            data,
        });
        if self.take_ns.is_none() {
            let interrupt_ns = self.profile.cpu.interrupt_ns;
            self.take_ns = Some(self.interference.finish(ring_ns, interrupt_ns));
        }
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at_ns) = self.take_ns.filter(|at_ns| *at_ns <= now.as_nanos()) {
            self.take(at_ns);
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.take_ns.map(Instant::from_nanos)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    /// A busy CPU sees new arrivals only when it takes its next frame.
    fn deliver_by(&self, arrival: Instant) -> Instant {
        self.poll_at().map_or(arrival, |take| take.max(arrival))
    }
}

#[cfg(test)]
mod tests;
