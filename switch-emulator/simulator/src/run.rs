//! The event loop.

use zodiac_firmware::Instant;

use crate::controller::{echo_replies, ECHO_DELAY_NS};
use crate::device::OutputKind;
use crate::error::Error;
use crate::flow::Identities;
use crate::link::{size_on_wire, Cargo};
use crate::network::{BoardNode, End, Network};
use crate::result::{BoardResult, FlowResult, RunEvent, RunResult};
use crate::schedule::{Schedule, Slot};

/// Events kept of a run; later ones are only counted.
const MAX_EVENTS: usize = 1_000;
/// Longest run together with its drain: instants stay far from overflow.
const MAX_RUN_NS: u64 = 1_000_000_000_000_000;

impl Network {
    /// Lets the sources send for `duration_ns` and then the frames in flight arrive for `drain_ns`.
    ///
    /// # Errors
    /// [`Error::Order`] on a second call: a network runs once. [`Error::Value`] for a run above 10^15 ns.
    pub fn run(&mut self, duration_ns: u64, drain_ns: u64) -> Result<RunResult, Error> {
        if self.has_run {
            return Err(Error::Order(
                "run() a second time: build a new network for each run".into(),
            ));
        }
        for (name, value) in [("duration_ns", duration_ns), ("drain_ns", drain_ns)] {
            if value > MAX_RUN_NS {
                return Err(Error::Value {
                    name,
                    value: value.to_string(),
                    range: format!("0 .. {MAX_RUN_NS}"),
                });
            }
        }
        self.has_run = true;
        let mut run = Run::new(self, duration_ns, drain_ns);
        run.carry();
        Ok(run.finish())
    }
}

/// What the board's controller has yet to send.
#[derive(Debug, Default)]
struct ControllerSide {
    /// Answers and when they reach the board, in order.
    answers: Vec<(u64, Vec<u8>)>,
}

/// What a timer stands for, by index in the network.
#[derive(Debug, Clone, Copy)]
enum Timer {
    /// A board has something to do.
    Work(usize),
    /// The controller's next answer reaches its board.
    Answer(usize),
    /// The first frame in flight on a link has completely arrived at a board.
    Arrival(usize),
    /// A source's next frame is due on its host's line.
    Release(usize),
}

/// A run under way.
struct Run<'a> {
    net: &'a mut Network,
    schedule: Schedule,
    identities: Identities,
    controllers: Vec<ControllerSide>,
    /// What each slot of the schedule stands for: boards, then controllers, links to boards, sources.
    timers: Vec<Timer>,
    /// Slot of each link; meaningless for those to hosts, where nothing waits for a frame's end.
    arrival_slots: Vec<usize>,
    /// Slot of the first source.
    first_release: usize,
    /// When each board is to be called, as it is in the schedule.
    work_ns: Vec<Option<u64>>,
    begin_ns: u64,
    end_ns: u64,
    events: Vec<RunEvent>,
    events_omitted: u64,
    unidentified: u64,
    in_flight: u64,
    unconnected: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(net: &'a mut Network, duration_ns: u64, drain_ns: u64) -> Self {
        let boards = net.boards.len();
        let mut timers: Vec<_> = (0..boards).map(Timer::Work).collect();
        timers.extend((0..boards).map(Timer::Answer));
        let mut arrival_slots = vec![0; net.links.len()];
        for (link, end) in net.ends.iter().enumerate() {
            if matches!(end, End::Board(..)) {
                arrival_slots[link] = timers.len();
                timers.push(Timer::Arrival(link));
            }
        }
        let first_release = timers.len();
        timers.extend((0..net.sources.len()).map(Timer::Release));
        let begin_ns = net
            .boards
            .iter()
            .map(|node| node.session.now_ns)
            .max()
            .unwrap_or(0);
        let mut run = Self {
            schedule: Schedule::new(timers.len()),
            identities: Identities::new(&net.flows),
            controllers: (0..boards).map(|_| ControllerSide::default()).collect(),
            timers,
            arrival_slots,
            first_release,
            work_ns: vec![None; boards],
            begin_ns,
            end_ns: begin_ns + duration_ns + drain_ns,
            events: Vec::new(),
            events_omitted: 0,
            unidentified: 0,
            in_flight: 0,
            unconnected: vec![0; boards],
            net,
        };
        for board in 0..boards {
            for (at_ns, event) in std::mem::take(&mut run.net.boards[board].session.events) {
                run.report(board, at_ns, event);
            }
            run.arm_board(board, begin_ns);
        }
        for index in 0..run.net.sources.len() {
            run.net.sources[index].start(begin_ns, begin_ns + duration_ns);
            run.arm_source(index);
        }
        run
    }

    /// Does everything until the end, in order of time.
    fn carry(&mut self) {
        while let Some((now_ns, slot)) = self.schedule.first() {
            if now_ns > self.end_ns {
                break;
            }
            match self.timers[usize::from(slot)] {
                Timer::Work(board) => {
                    self.net.boards[board]
                        .device
                        .advance(Instant::from_nanos(now_ns));
                    self.collect(board, now_ns);
                }
                Timer::Answer(board) => self.answer(board, now_ns),
                Timer::Arrival(link) => self.arrive(link, now_ns),
                Timer::Release(source) => self.release(source, now_ns),
            }
        }
    }

    fn arm(&mut self, slot: usize, at_ns: Option<u64>) {
        self.schedule.arm(slot as Slot, at_ns);
    }

    fn arm_board(&mut self, board: usize, now_ns: u64) {
        let at_ns = self.net.boards[board]
            .device
            .poll_at()
            .map(|at| at.as_nanos().max(now_ns));
        // A frame that comes while the CPU works does not change when the next pass begins.
        if at_ns != self.work_ns[board] {
            self.work_ns[board] = at_ns;
            self.arm(board, at_ns);
        }
    }

    fn arm_source(&mut self, index: usize) {
        let line = &self.net.links[self.line(index)];
        let at_ns = self.net.sources[index].next_release_ns(line.busy_until_ns());
        self.arm(self.first_release + index, at_ns);
    }

    fn disarm_source(&mut self, index: usize) {
        self.arm(self.first_release + index, None);
    }

    /// The line onto which a source sends.
    fn line(&self, source: usize) -> usize {
        let host = self.net.flows[source].from;
        self.net.hosts[host]
            .link
            .expect("add_source refuses hosts without a link")
    }

    /// A source's next frame is due on its host's line: sends it, or lets it wait for its turn.
    fn release(&mut self, index: usize, now_ns: u64) {
        let line = self.line(index);
        let is_busy = self.net.links[line].busy_until_ns() > now_ns;
        let waiting = &mut self.net.hosts[self.net.flows[index].from].waiting;
        match waiting.front().copied() {
            None if is_busy => {
                waiting.push_back(index);
                self.arm_source(index);
            }
            Some(first) if is_busy || first != index => {
                waiting.push_back(index);
                self.disarm_source(index);
            }
            _ => {
                waiting.pop_front();
                let next = waiting.front().copied();
                self.send(index, line, now_ns);
                if let Some(next) = next {
                    // Whoever waits goes before this source's next frame.
                    self.arm_source(next);
                }
                self.arm_source(index);
            }
        }
    }

    /// A source's frame begins on its host's line, which is free.
    fn send(&mut self, index: usize, line_index: usize, now_ns: u64) {
        let Network {
            links,
            sources,
            flows,
            ends,
            ..
        } = &mut *self.net;
        let (line, source) = (&mut links[line_index], &mut sources[index]);
        source.release(now_ns);
        line.occupy(now_ns, source.frame_bytes());
        let sequence = flows[index].send(signed_difference_ns(now_ns, self.begin_ns));
        match ends[line_index] {
            End::Board(..) => {
                let arrival_ns = line.arrival_ns(now_ns, source.frame_bytes());
                if line.push(
                    arrival_ns,
                    Cargo::Emission {
                        source: index as u32,
                        sequence,
                    },
                ) {
                    self.schedule
                        .arm(self.arrival_slots[line_index] as Slot, Some(arrival_ns));
                }
            }
            End::Host(host) => {
                let begin_ns = now_ns + line.timing.propagation_ns();
                let data = flows[index].frame(sequence).to_vec();
                self.deliver(host, begin_ns, &data);
            }
        }
    }

    /// The first frame in flight on a link has completely arrived at a board.
    fn arrive(&mut self, link: usize, now_ns: u64) {
        let Network {
            boards,
            links,
            flows,
            ends,
            ..
        } = &mut *self.net;
        let End::Board(board, port) = ends[link] else {
            return;
        };
        let Some((_, cargo)) = links[link].pop() else {
            return;
        };
        let next_ns = links[link].next_arrival_ns();
        self.schedule.arm(self.arrival_slots[link] as Slot, next_ns);
        let now = Instant::from_nanos(now_ns);
        match cargo {
            Cargo::Emission { source, sequence } => {
                boards[board]
                    .device
                    .frame(now, port, flows[source as usize].frame(sequence));
            }
            Cargo::Bytes(data) => boards[board].device.frame_owned(now, port, data),
        }
        self.collect(board, now_ns);
    }

    /// The controller's next answer reaches its board.
    fn answer(&mut self, board: usize, now_ns: u64) {
        let answers = &mut self.controllers[board].answers;
        let (_, bytes) = answers.remove(0);
        let next_ns = answers.first().map(|(at_ns, _)| *at_ns);
        self.arm(self.net.boards.len() + board, next_ns);
        self.net.boards[board]
            .device
            .segment(Instant::from_nanos(now_ns), &bytes);
        self.collect(board, now_ns);
    }

    /// Takes what a board gives out, and notes when it is to be called again.
    fn collect(&mut self, board: usize, now_ns: u64) {
        while let Some(output) = self.net.boards[board].device.poll_output() {
            let at_ns = output.at.as_nanos();
            match output.kind {
                OutputKind::Frame { ports, data } => {
                    let mut ports = ports.iter();
                    let last = ports.next();
                    for port in ports {
                        self.depart(board, port, at_ns, data.clone());
                    }
                    if let Some(port) = last {
                        self.depart(board, port, at_ns, data);
                    }
                }
                OutputKind::Controller(bytes) => self.answer_echo(board, at_ns, &bytes),
                OutputKind::Event(event) => self.report(board, at_ns, event),
                OutputKind::Close => {
                    self.report(board, at_ns, "the board closed its control session".into());
                }
                OutputKind::Connect => {}
            }
        }
        self.arm_board(board, now_ns);
    }

    /// A frame begins to leave a board by `port` at `at_ns`.
    fn depart(&mut self, board: usize, port: u8, at_ns: u64, data: Vec<u8>) {
        let Some(index) = self.net.boards[board].links[usize::from(port) - 1] else {
            self.unconnected[board] += 1;
            return;
        };
        let link = &mut self.net.links[index];
        match self.net.ends[index] {
            End::Host(host) => {
                let begin_ns = at_ns + link.timing.propagation_ns();
                self.deliver(host, begin_ns, &data);
                // The sender's memory, for its next frames.
                self.net.boards[board].device.recycle(data);
            }
            End::Board(..) => {
                // The board itself keeps the frames of a port apart.
                let arrival_ns = link.arrival_ns(at_ns, size_on_wire(data.len()));
                if link.push(arrival_ns, Cargo::Bytes(data)) {
                    self.schedule
                        .arm(self.arrival_slots[index] as Slot, Some(arrival_ns));
                }
            }
        }
    }

    /// The beginning of a frame passes a host's tap at `begin_ns`.
    fn deliver(&mut self, host: usize, begin_ns: u64, data: &[u8]) {
        if begin_ns > self.end_ns {
            self.in_flight += 1;
        } else if !self.identities.receive(
            &mut self.net.flows,
            host,
            signed_difference_ns(begin_ns, self.begin_ns),
            data,
        ) {
            self.unidentified += 1;
        }
    }

    /// Keeps the session alive, as a controller does.
    fn answer_echo(&mut self, board: usize, at_ns: u64, bytes: &[u8]) {
        if let Some(reply) = echo_replies(bytes) {
            let answers = &mut self.controllers[board].answers;
            answers.push((at_ns + ECHO_DELAY_NS, reply));
            let first_ns = answers.first().map(|(at_ns, _)| *at_ns);
            self.arm(self.net.boards.len() + board, first_ns);
        }
    }

    fn report(&mut self, board: usize, at_ns: u64, text: String) {
        if self.events.len() < MAX_EVENTS {
            let at_ns = signed_difference_ns(at_ns, self.begin_ns);
            self.events.push(RunEvent {
                at_ns,
                board: self.net.boards[board].name.clone(),
                text,
            });
        } else {
            self.events_omitted += 1;
        }
    }

    fn finish(mut self) -> RunResult {
        self.events.sort_by_key(|event| event.at_ns);
        let Network {
            boards,
            links,
            sources,
            flows,
            ..
        } = self.net;
        let in_flight: u64 = links.iter().map(|link| link.frames() as u64).sum();
        for (flow, source) in flows.iter_mut().zip(sources.iter_mut()) {
            flow.counters.unsent = source.finish();
            flow.counters.offered = source.counters.offered;
            flow.counters.dropped_at_sender = source.counters.dropped;
            flow.counters.sent = flow.sent_ns.len() as u64;
        }
        let packets = flows.iter().map(|flow| flow.counters.sent).sum();
        let mut flows: Vec<_> = flows.iter_mut().map(FlowResult::take).collect();
        flows.sort_by_key(|flow| flow.flow);
        let board_result = |(node, unconnected): (&BoardNode, u64)| BoardResult {
            name: node.name.clone(),
            counters: node.device.counters(),
            unconnected,
        };
        RunResult {
            flows,
            boards: boards
                .iter()
                .zip(self.unconnected)
                .map(board_result)
                .collect(),
            packets,
            unidentified: self.unidentified,
            in_flight: self.in_flight + in_flight,
            events: self.events,
            events_omitted: self.events_omitted,
        }
    }
}

/// From `earlier_ns` to `at_ns`; negative before it.
#[allow(clippy::cast_possible_wrap)] // instants stay below 2^62
fn signed_difference_ns(at_ns: u64, earlier_ns: u64) -> i64 {
    at_ns as i64 - earlier_ns as i64
}
