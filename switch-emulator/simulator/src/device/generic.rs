//! A generic switch: a fixed time for each frame, then a queue discipline before each port.
//!
//! A frame that has completely arrived is looked up, and comes to its port's discipline `forwarding.latency_ns` later. From
//! there it departs when the discipline gives it and the wire is free. Ports do not share anything. Which
//! queue of the port a frame waits in is what the action `enqueue` of its entry says; without one it is queue 0.

use std::collections::VecDeque;

use zodiac_firmware::{Counters, Instant};

use super::openflow::{Agent, Verdict};
use super::{Output, OutputKind, Ports, Switch, SwitchConfig};
use crate::link::{size_on_wire, Timing};
use crate::queue::{discipline, Discipline, Waiting};

mod profile;

pub use profile::GenericSwitchProfile;

/// What stands between the table and one front port's wire.
#[derive(Debug)]
struct Port {
    discipline: Box<dyn Discipline>,
    /// When the wire can begin another frame.
    free_ns: u64,
    /// When to ask the discipline again; nothing if only a frame changes anything.
    ask_ns: Option<u64>,
}

/// A frame on its way to its port's discipline.
#[derive(Debug)]
struct Forwarded {
    ready_ns: u64,
    port: u8,
    queue: u32,
    data: Vec<u8>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct GenericSwitch {
    agent: Agent,
    latency_ns: u64,
    wire: Timing,
    /// In order of arrival, and so of `ready_ns`.
    forwarded: VecDeque<Forwarded>,
    ports: Vec<Port>,
    counters: Counters,
    outputs: VecDeque<Output>,
}

impl GenericSwitch {
    /// # Errors
    /// What is wrong with the settings of a port's queues, and how to mend it.
    pub(crate) fn new(
        profile: &GenericSwitchProfile,
        config: &SwitchConfig,
    ) -> Result<Self, String> {
        let count = profile.ports.count;
        if let Some(port) = config
            .schedulers
            .keys()
            .find(|port| !(1..=count).contains(*port))
        {
            return Err(format!(
                "schedulers: there is no port {port}: choose 1 to {count}"
            ));
        }
        let ports = (1..=count).map(|number| {
            let discipline = discipline(config.schedulers.get(&number))
                .map_err(|reason| format!("schedulers: port {number}: {reason}"))?;
            Ok(Port {
                discipline,
                free_ns: 0,
                ask_ns: None,
            })
        });
        Ok(Self {
            agent: Agent::with_queues(config.mac, count, profile.table.entries as usize),
            latency_ns: profile.forwarding.latency_ns,
            wire: Timing::of_rate(profile.ports.link_rate_bps),
            forwarded: VecDeque::new(),
            ports: ports.collect::<Result<_, String>>()?,
            counters: Counters::default(),
            outputs: VecDeque::from([Output {
                at: Instant::ZERO,
                kind: OutputKind::Connect,
            }]),
        })
    }

    /// When the next thing happens.
    fn next_ns(&self) -> Option<u64> {
        let asked = self.ports.iter().filter_map(|port| port.ask_ns);
        asked
            .chain(self.forwarded.front().map(|frame| frame.ready_ns))
            .min()
    }

    /// Lets a port send at `now_ns` if its wire is free.
    fn serve(&mut self, number: u8, now_ns: u64) {
        let port = &mut self.ports[usize::from(number) - 1];
        if port.free_ns > now_ns {
            port.ask_ns = Some(port.free_ns);
            return;
        }
        let Some(frame) = port.discipline.dequeue(now_ns) else {
            port.ask_ns = port.discipline.wake_ns();
            return;
        };
        port.free_ns = now_ns + self.wire.slot_ns(size_on_wire(frame.data.len()));
        port.ask_ns = Some(port.free_ns);
        self.counters.forwarded += 1;
        self.outputs.push_back(Output {
            at: Instant::from_nanos(now_ns),
            kind: OutputKind::Frame {
                ports: Ports::default().with(number),
                data: frame.data,
            },
        });
    }
}

impl Switch for GenericSwitch {
    fn agent(&mut self) -> &mut Agent {
        &mut self.agent
    }

    fn outputs(&mut self) -> &mut VecDeque<Output> {
        &mut self.outputs
    }

    fn frame(&mut self, now: Instant, port: u8, data: Vec<u8>) {
        self.advance(now);
        self.counters.received += 1;
        self.counters.processed += 1;
        match self.agent.look_up(&data, port) {
            Verdict::Miss => self.counters.missed += 1,
            Verdict::Drop => self.counters.dropped_flow += 1,
            Verdict::Forward { ports, queue } => {
                for port in ports.iter() {
                    self.forwarded.push_back(Forwarded {
                        ready_ns: now.as_nanos() + self.latency_ns,
                        port,
                        queue,
                        data: data.clone(),
                    });
                }
            }
        }
        self.advance(now);
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at_ns) = self.next_ns().filter(|at_ns| *at_ns <= now.as_nanos()) {
            while let Some(frame) = self.forwarded.front().filter(|one| one.ready_ns <= at_ns) {
                let (number, queue) = (frame.port, frame.queue);
                let port = &mut self.ports[usize::from(number) - 1];
                if let Some(frame) = self.forwarded.pop_front() {
                    let frame = Waiting { data: frame.data };
                    port.discipline.enqueue(at_ns, queue, frame);
                }
                port.ask_ns = Some(at_ns);
            }
            for number in 1..=self.ports.len() as u8 {
                if self.ports[usize::from(number) - 1].ask_ns == Some(at_ns) {
                    self.serve(number, at_ns);
                }
            }
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.next_ns().map(Instant::from_nanos)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for port in &self.ports {
            let dropped = port.discipline.dropped();
            counters.dropped_transmit += dropped.full;
            counters.dropped_policy += dropped.policed;
        }
        counters
    }
}

#[cfg(test)]
mod tests;
