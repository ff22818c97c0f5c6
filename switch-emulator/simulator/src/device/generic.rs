//! Generic switch: a processing delay for each frame, then a queue discipline on each port.
//!
//! A frame that has completely arrived (with cut-through: whose header has) is looked up, and enters its port's discipline
//! when it leaves the pipeline. It departs when the discipline hands it out and the wire is free. The action `enqueue` of
//! its entry chooses the queue of the port in which it waits; without that action it is queue 0.
//!
//! A profile composes the switch of optional parts: without any, a frame takes a fixed time, the ports share nothing, and
//! the table treats entries of all kinds alike.
//!
//! | module | part |
//! |---|---|
//! | `pipeline` | how long the switch chip works on a frame |
//! | `lookup` | a look-up that takes fewer frames a second than the ports bring |
//! | `server` | what forwards the frames of all ports one after another, at a rate in bit/s |
//! | `software` | the CPU, which forwards what the chip cannot |
//! | `buffer_pool` | a memory that all queues share |
//! | `openflow::agent` | how entries get from the agent to the chip |
//! | `openflow::rules` | what the table holds, and where, by the kinds of match and action |
//! | `queue::priority` | strict priority, checked every so often |

use std::collections::VecDeque;

use zodiac_firmware::{Counters, Instant};

use super::openflow::rules::Path;
use super::openflow::{OpenFlowAgent, Verdict};
use super::{DeviceOutput, DeviceOutputKind, PortSet, SwitchConfig, SwitchModel};
use crate::link::{size_on_wire, Timing};
use crate::queue::{discipline, Discipline, QueuedFrame, StrictPriority};
use crate::random::Stream;

mod asks;
mod buffer_pool;
mod lookup;
mod pipeline;
mod profile;
mod server;
mod software;

use asks::Asks;
use buffer_pool::BufferPool;
use lookup::Lookup;
use pipeline::{Entering, Pipeline};
pub use profile::GenericSwitchProfile;
use server::Server;
use software::Software;

/// Streams of random numbers: one for each part that draws any.
mod stream {
    pub(super) const PIPELINE: u64 = 0;
    pub(super) const SOFTWARE: u64 = 1;
    pub(super) const PRIORITY: u64 = 2;
    pub(super) const AGENT: u64 = 3;
}

/// Later than any instant of a run.
const NEVER_NS: u64 = u64::MAX;

/// Egress side of a front port.
#[derive(Debug)]
struct Port {
    discipline: Box<dyn Discipline>,
    wire: Timing,
    /// When the wire can begin another frame.
    free_ns: u64,
}

/// A frame on its way to its port's discipline.
#[derive(Debug)]
struct ForwardedFrame {
    ready_ns: u64,
    port: u8,
    queue: u32,
    data: Vec<u8>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct GenericSwitch {
    agent: OpenFlowAgent,
    pipeline: Pipeline,
    lookup: Option<Lookup>,
    server: Option<Server>,
    software: Option<Software>,
    pool: Option<BufferPool>,
    /// In order of `ready_ns`, then of arrival.
    forwarded: VecDeque<ForwardedFrame>,
    ports: Vec<Port>,
    asks: Asks,
    counters: Counters,
    outputs: VecDeque<DeviceOutput>,
}

impl GenericSwitch {
    /// # Errors
    /// Fault in the settings of a port's queues, and how to mend it.
    pub(crate) fn new(
        profile: &GenericSwitchProfile,
        config: &SwitchConfig,
        seed: u64,
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
        let link_rate_bps = profile.link_rate_bps(config);
        if !(1..=1_000_000_000_000).contains(&link_rate_bps) {
            return Err("link_rate_bps: choose 1 to 1000000000000".into());
        }
        let mut phases = Stream::new(seed, stream::PRIORITY);
        let ports = (1..=count).map(|number| {
            let discipline: Box<dyn Discipline> =
                match (config.schedulers.get(&number), &profile.priorities) {
                    (None, Some(priorities)) => Box::new(StrictPriority::new(
                        priorities.queues as u32,
                        priorities.limit_frames,
                        priorities.check_ns,
                        pipeline::below(priorities.check_ns, phases.bits()),
                    )),
                    (config, _) => discipline(config)
                        .map_err(|reason| format!("schedulers: port {number}: {reason}"))?,
                };
            Ok(Port {
                discipline,
                wire: Timing::of_rate(link_rate_bps),
                free_ns: 0,
            })
        });
        Ok(Self {
            agent: match profile.table_model() {
                Some(model) => OpenFlowAgent::modelled(
                    config.mac,
                    count,
                    model,
                    (
                        profile.agent.unwrap_or_default(),
                        Stream::new(seed, stream::AGENT),
                    ),
                ),
                None => {
                    OpenFlowAgent::with_queues(config.mac, count, profile.table.entries as usize)
                }
            },
            pipeline: Pipeline::new(
                profile.pipeline(),
                count,
                Stream::new(seed, stream::PIPELINE),
            ),
            lookup: profile.lookup.map(Lookup::new),
            server: profile.server.map(Server::new),
            software: profile
                .software
                .map(|software| Software::new(software, Stream::new(seed, stream::SOFTWARE))),
            pool: profile
                .buffer
                .map(|buffer| BufferPool::new(buffer, profile.queues())),
            forwarded: VecDeque::new(),
            ports: ports.collect::<Result<_, String>>()?,
            asks: Asks::default(),
            counters: Counters::default(),
            outputs: VecDeque::from([DeviceOutput {
                at: Instant::ZERO,
                kind: DeviceOutputKind::Connect,
            }]),
        })
    }

    /// Returns when the next thing happens.
    fn next_ns(&self) -> Option<u64> {
        let came_ns = self
            .forwarded
            .front()
            .map_or(NEVER_NS, |frame| frame.ready_ns);
        let asked_ns = self.asks.next_ns().unwrap_or(NEVER_NS);
        let worked_ns = self.agent.next_ns().unwrap_or(NEVER_NS);
        let next_ns = came_ns.min(asked_ns).min(worked_ns);
        (next_ns != NEVER_NS).then_some(next_ns)
    }

    /// Puts a frame behind those that come to their queues earlier or with it.
    fn forward(&mut self, frame: ForwardedFrame) {
        let earlier = |one: &ForwardedFrame| one.ready_ns <= frame.ready_ns;
        let place = match self.forwarded.back() {
            Some(last) if !earlier(last) => self.forwarded.partition_point(earlier),
            _ => self.forwarded.len(),
        };
        self.forwarded.insert(place, frame);
    }

    /// A frame comes to its queue.
    fn enqueue(&mut self, now_ns: u64, frame: ForwardedFrame) {
        let discipline = &mut self.ports[usize::from(frame.port) - 1].discipline;
        let waiting = QueuedFrame { data: frame.data };
        if let Some(pool) = &mut self.pool {
            let reserved = pool.reserved_bytes();
            let before = discipline.occupancy(frame.queue, reserved);
            if !pool.admits(before, waiting.data.len() as u64) {
                discipline.refuse();
                return;
            }
            discipline.enqueue(now_ns, frame.queue, waiting);
            pool.changed(before, discipline.occupancy(frame.queue, reserved));
        } else {
            discipline.enqueue(now_ns, frame.queue, waiting);
        }
        self.asks.set(frame.port, Some(now_ns));
    }

    /// Lets a port send at `now_ns` if its wire is free.
    fn serve(&mut self, number: u8, now_ns: u64) {
        let port = &mut self.ports[usize::from(number) - 1];
        if port.free_ns > now_ns {
            self.asks.set(number, Some(port.free_ns));
            return;
        }
        let reserved = self.pool.as_ref().map_or(0, BufferPool::reserved_bytes);
        let before = self
            .pool
            .as_ref()
            .map(|_| port.discipline.occupancy(0, reserved));
        let Some(frame) = port.discipline.dequeue(now_ns) else {
            self.asks.set(number, port.discipline.wake_ns());
            return;
        };
        if let (Some(pool), Some(before)) = (&mut self.pool, before) {
            pool.changed(before, port.discipline.occupancy(0, reserved));
        }
        port.free_ns = now_ns + port.wire.slot_ns(size_on_wire(frame.data.len()));
        let more = !port.discipline.is_idle();
        self.asks.set(number, more.then_some(port.free_ns));
        self.counters.forwarded += 1;
        self.outputs.push_back(DeviceOutput {
            at: Instant::from_nanos(now_ns),
            kind: DeviceOutputKind::Frame {
                ports: PortSet::default().with(number),
                data: frame.data,
            },
        });
    }
}

impl SwitchModel for GenericSwitch {
    fn agent(&mut self) -> &mut OpenFlowAgent {
        &mut self.agent
    }

    fn outputs(&mut self) -> &mut VecDeque<DeviceOutput> {
        &mut self.outputs
    }

    fn set_link_rate(&mut self, port: u8, rate_bps: u64) {
        self.ports[usize::from(port) - 1].wire = Timing::of_rate(rate_bps);
    }

    fn frame(&mut self, now: Instant, port: u8, mut data: Vec<u8>) {
        self.advance(now);
        self.counters.received += 1;
        let now_ns = now.as_nanos();
        let at_ns = match &mut self.lookup {
            Some(lookup) => lookup.take(now_ns),
            None => Some(now_ns),
        };
        let came_bytes = size_on_wire(data.len());
        let at_ns = match (&mut self.server, at_ns) {
            (Some(server), Some(at_ns)) => server.take(at_ns, came_bytes),
            (_, at_ns) => at_ns,
        };
        let Some(at_ns) = at_ns else {
            self.counters.dropped_switch += 1;
            return;
        };
        self.counters.processed += 1;
        let treatment = self.agent.treatment(now_ns, &data, port);
        let (verdict, by_port) = (treatment.verdict, treatment.by_port);
        let in_software = treatment.path == Path::Software;
        for rewrite in treatment.rewrites {
            rewrite.apply(&mut data);
        }
        let (ports, queue) = match verdict {
            Verdict::Miss => {
                self.counters.missed += 1;
                return;
            }
            Verdict::Drop => {
                self.counters.dropped_flow += 1;
                return;
            }
            Verdict::Forward { ports, queue } => (ports, queue),
        };
        let ready_ns = match &mut self.software {
            Some(software) if in_software || !by_port && software.takes_short(came_bytes) => {
                software.take(now_ns)
            }
            _ => Some(self.pipeline.ready_ns(Entering {
                at_ns,
                port,
                frame_bytes: came_bytes,
                slot_ns: self.ports[usize::from(port) - 1].wire.slot_ns(came_bytes),
                gets_tag: size_on_wire(data.len()) > came_bytes,
            })),
        };
        let Some(ready_ns) = ready_ns else {
            self.counters.dropped_buffer += 1;
            return;
        };
        let mut ports = ports.iter().peekable();
        while let Some(port) = ports.next() {
            let data = match ports.peek() {
                Some(_) => data.clone(),
                None => std::mem::take(&mut data),
            };
            self.forward(ForwardedFrame {
                ready_ns,
                port,
                queue,
                data,
            });
        }
        self.advance(now);
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at_ns) = self.next_ns().filter(|at_ns| *at_ns <= now.as_nanos()) {
            if self.agent.next_ns() == Some(at_ns) {
                for answer in self.agent.work(at_ns) {
                    self.answer(Instant::from_nanos(at_ns), answer);
                }
            }
            let is_ready = |one: &ForwardedFrame| one.ready_ns <= at_ns;
            while self.forwarded.front().is_some_and(is_ready) {
                let Some(frame) = self.forwarded.pop_front() else {
                    break;
                };
                self.enqueue(at_ns, frame);
            }
            let mut after = 0;
            while let Some(number) = self.asks.port_at(at_ns, after) {
                self.serve(number, at_ns);
                after = number;
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
