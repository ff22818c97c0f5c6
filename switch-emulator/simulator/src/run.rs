//! Event loop of a run.

mod control_network;
mod hot;
mod stepping;
mod timers;
mod transfers;

use std::collections::VecDeque;

use zodiac_firmware::{is_pause_frame, Deferrable, FlowKey, Instant};

use self::hot::{EgressLinks, Origin, SourceTraits};
use self::timers::{Slots, Timer};
use crate::capture::FrameOnLink;
use crate::controller::{echo_replies, ECHO_DELAY_NS};
use crate::device::{Device, DeviceOutputKind, DeviceReport};
use crate::error::Error;
use crate::flow::{Identities, TrafficFlow};
use crate::frame_arena::FrameArena;
use crate::inbox::{InFlightFrame, Payload};
use crate::link::{size_on_wire, End};
use crate::network::{BoardNode, LinkEvent, Network};
use crate::prefetch::{prefetch, PREFETCH_MIN_BOARDS};
use crate::result::{BoardResult, EventLog, FlowResult, RunEvent, RunResult};
use crate::schedule::Schedule;
use crate::tcp::TcpConnection;

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
        let begin_ns = self.now_ns();
        let mut run = Run::new(self, begin_ns + duration_ns + drain_ns);
        run.start_sources(duration_ns);
        run.start_controllers();
        run.has_link_events = !run.net.link_events.is_empty();
        run.arm_link_events();
        run.run_to_end();
        Ok(run.finish())
    }

    /// How far time has come since the boards were powered up: when a run would begin, or where the last step ended.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        if let Some(steps) = &self.steps {
            return steps.now_ns;
        }
        let sessions = self.boards.iter().map(|node| node.session.now_ns);
        sessions.max().unwrap_or(0)
    }
}

impl Network {
    /// Returns a frame sets out at `now_ns` to a board or controller. Returns that if the frame will arrive there
    /// before all others.
    #[inline(always)]
    fn enqueue_arrival(&mut self, frame: InFlightFrame, now_ns: u64) -> Option<End> {
        let link = &mut self.links[frame.link as usize];
        let end = link.end;
        let inbox = match end {
            End::Board(board, _) => &mut self.boards[board].inbox,
            End::Controller(controller, _) => &mut self.controllers[controller].inbox,
            End::Host(_) => return None,
        };
        inbox.push(frame, link, now_ns).then_some(end)
    }

    /// Returns the link of a source's host.
    fn line_of(&self, source: usize) -> usize {
        let host = &self.hosts[self.flows[source].from() as usize];
        host.link.expect("add_source refuses hosts without a link")
    }
}

/// State of a run.
struct Run<'a> {
    net: &'a mut Network,
    schedule: Schedule,
    identities: Identities,
    /// For each source.
    origins: Vec<Origin>,
    source_traits: Vec<SourceTraits>,
    egress_links: EgressLinks,
    /// For each host, the sources whose frames wait for its link, in turn; only the first one's timer is armed.
    waiting: Vec<VecDeque<u32>>,
    slots: Slots,
    /// Buffers of delivered frames, reused last in, first out, while they are in the CPU cache.
    buffer_pool: Vec<Vec<u8>>,
    begin_ns: u64,
    now_ns: u64,
    end_ns: u64,
    events: EventLog,
    deviations: EventLog,
    unidentified: u64,
    in_flight: u64,
    lost_on_link_down: u64,
    /// Whether link events are planned for this run; false before the run.
    has_link_events: bool,
    unconnected: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(net: &'a mut Network, end_ns: u64) -> Self {
        let boards = net.boards.len();
        let timers = net.timers();
        let slots = Slots::new(net, &timers);
        let begin_ns = net.now_ns();
        let identities = Identities::new(&net.flows);
        let sources = 0..net.sources.len();
        let mut run = Self {
            schedule: Schedule::new(timers.len()),
            egress_links: EgressLinks::of(&net.boards),
            waiting: vec![VecDeque::new(); net.hosts.len()],
            origins: sources.clone().map(|source| net.origin(source)).collect(),
            source_traits: sources
                .map(|source| net.source_traits(source, &identities))
                .collect(),
            identities,
            buffer_pool: Vec::new(),
            slots,
            begin_ns,
            now_ns: begin_ns,
            end_ns,
            events: EventLog::default(),
            deviations: EventLog::default(),
            unidentified: 0,
            in_flight: 0,
            lost_on_link_down: 0,
            has_link_events: false,
            unconnected: vec![0; boards],
            net,
        };
        for board in 0..boards {
            for (at_ns, report) in std::mem::take(&mut run.net.boards[board].session.events) {
                run.report(board, at_ns, report);
            }
            run.arm_board(board, begin_ns);
            run.arm_answer(board);
        }
        for controller in 0..run.net.controllers.len() {
            run.arm_controller(controller, begin_ns);
            run.arm_arrival(controller);
        }
        run
    }

    fn start_sources(&mut self, duration_ns: u64) {
        for index in 0..self.net.sources.len() {
            let end_ns = self.begin_ns + duration_ns;
            let source = &mut self.net.sources[index];
            source.start(self.begin_ns, end_ns);
            self.net.flows[index].expect(source.expected_frames(duration_ns));
            self.arm_source(index, self.origins[index].line());
        }
        self.start_transfers(duration_ns);
    }

    fn start_controllers(&mut self) {
        for board in 0..self.net.boards.len() {
            self.net.boards[board].session.begin(self.begin_ns);
            self.arm_answer(board);
        }
    }

    /// Processes events until the end of the run.
    fn run_to_end(&mut self) {
        while self.step() {}
    }

    /// Processes events for `duration_ns`.
    fn run_for(&mut self, duration_ns: u64) {
        self.end_ns = self.now_ns + duration_ns;
        self.run_to_end();
        self.now_ns = self.end_ns;
    }

    /// Processes the next event. Returns `false` if there is none before the end.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let Some((now_ns, tag)) = self.schedule.first() else {
            return false;
        };
        if now_ns > self.end_ns {
            return false;
        }
        self.now_ns = now_ns;
        match Timer::of(tag) {
            Timer::Work(board) => self.work(board as usize, now_ns),
            Timer::Answer(board) => self.answer(board as usize, now_ns),
            Timer::Stack(controller) => {
                let controller = controller as usize;
                self.net.controllers[controller].work(now_ns);
                self.collect_controller(controller, now_ns);
            }
            Timer::Arrival(controller) => self.deliver_to_controller(controller as usize, now_ns),
            Timer::Release(source) => self.release(source as usize, now_ns),
            Timer::Transfer(index, side) => self.transfer(index as usize, side, now_ns),
            Timer::LinkEvent => self.apply_link_event(now_ns),
        }
        true
    }

    /// Returns whether prefetching pays.
    #[inline(always)]
    fn is_large(&self) -> bool {
        self.net.boards.len() >= PREFETCH_MIN_BOARDS
    }

    /// Prefetches what a board's work may touch outside of the board.
    #[inline(always)]
    fn prefetch_board(&self, board: usize) {
        if !self.is_large() {
            return;
        }
        self.schedule.prefetch(self.slots.work[board].slot);
        for link in self.egress_links.first_links(board) {
            prefetch(self.net.links[link].last_arrival_ns);
        }
    }

    /// Prefetches what the release of a source's frame touches.
    #[inline(always)]
    fn prefetch_source(&self, source: usize) {
        if !self.is_large() {
            return;
        }
        self.schedule.prefetch(self.slots.release[source]);
        prefetch(self.net.sources[source].frame_bytes());
        prefetch(self.net.flows[source].counters.sent);
    }

    /// Lets a board work.
    #[inline]
    fn work(&mut self, board: usize, now_ns: u64) {
        self.prefetch_board(board);
        if self.forward_fast(board, now_ns) {
            return self.arm_board(board, now_ns);
        }
        self.deliver_to_board(board, now_ns);
        let device = &mut self.net.boards[board].device;
        device.advance(Instant::from_nanos(now_ns));
        self.collect(board, now_ns);
    }

    /// Tries to forward a board's first frame on the fast path. Returns whether it did.
    #[inline]
    fn forward_fast(&mut self, board: usize, now_ns: u64) -> bool {
        // A caller that steps the network may inspect the boards between two steps: no work is skipped.
        if self.net.steps.is_some() {
            return false;
        }
        let Network {
            boards,
            flows,
            arena,
            ..
        } = &mut *self.net;
        let BoardNode { device, inbox, .. } = &mut boards[board];
        let Device::Board(firmware) = device else {
            return false;
        };
        let Some((first, behind)) = inbox.arrived_by(now_ns) else {
            return false;
        };
        let payload = first.payload();
        let flow_id = match payload {
            Payload::SourceFrame { source, .. }
                if self.source_traits[source as usize].has_constant_key =>
            {
                Some(source)
            }
            Payload::SourceFrame { .. } | Payload::Bytes(_) => None,
        };
        let key = || match payload {
            Payload::SourceFrame { source, sequence } => {
                FlowKey::read(flows[source as usize].frame(sequence))
            }
            Payload::Bytes(id) => FlowKey::read(arena.get(id)),
        };
        let now = Instant::from_nanos(now_ns);
        let waiting = behind.len();
        let Some(forwarded) = firmware.forward_fast(now, first, flow_id, key, behind) else {
            return false;
        };
        if let Some(frame) = inbox.pop_first(waiting) {
            let link = self.egress_links.link(board, forwarded.port.get());
            self.transmit_from_board(board, link, forwarded.departs.as_nanos(), frame);
        }
        true
    }

    #[inline(always)]
    fn arm(&mut self, timer: Timer, at_ns: Option<u64>) {
        self.schedule.arm(self.slots.of(timer), timer.tag(), at_ns);
    }

    fn arm_board(&mut self, board: usize, now_ns: u64) {
        let is_stepping = self.net.steps.is_some();
        let BoardNode { device, inbox, .. } = &mut self.net.boards[board];
        let mut due = device.poll_at().unwrap_or(Instant::NEVER);
        if let Some(frame) = inbox.first() {
            let arrival = Instant::from_nanos(frame.arrival_ns);
            // A caller that steps the network may inspect the boards between two steps: no frame is deferred.
            due = due.min(if frame.is_pause || is_stepping {
                arrival
            } else {
                device.deliver_by(arrival, frame.port, frame.bytes.into())
            });
        }
        if let Some(frame) = inbox.first_pending() {
            if !device.can_defer(&frame.deferred()) {
                due = due.min(Instant::from_nanos(frame.arrival_ns));
            }
        }
        let due = due.max(Instant::from_nanos(now_ns));
        // A frame that comes while the CPU works does not change when the next iteration begins.
        let timer = &mut self.slots.work[board];
        if due != timer.due {
            timer.due = due;
            let at_ns = (due != Instant::NEVER).then_some(due.as_nanos());
            let tag = Timer::Work(board as u32).tag();
            self.schedule.arm(timer.slot, tag, at_ns);
        }
    }

    fn arm_answer(&mut self, board: usize) {
        let next_ns = self.net.boards[board].session.next_ns();
        self.arm(Timer::Answer(board as u32), next_ns);
    }

    /// Arms a source's timer; `line` is its host's link.
    #[inline]
    fn arm_source(&mut self, index: usize, line: usize) {
        let line = &self.net.links[line];
        let at_ns = self.net.sources[index].next_release_ns(line.busy_until_ns());
        self.arm(Timer::Release(index as u32), at_ns);
    }

    fn arm_link_events(&mut self) {
        let next = self.net.link_events.front();
        let at_ns = next.map(|event| self.begin_ns + event.at_ns);
        self.arm(Timer::LinkEvent, at_ns);
    }

    /// Applies a link event: boards at both ends see it, and frames in flight are lost.
    fn apply_link_event(&mut self, now_ns: u64) {
        let Some(event) = self.net.link_events.pop_front() else {
            return;
        };
        self.arm_link_events();
        self.set_links(event, now_ns);
    }

    /// Brings both directions of a cable up or down.
    fn set_links(&mut self, event: LinkEvent, now_ns: u64) {
        for link in event.links() {
            self.net.links[link].is_down = !event.is_up;
            match self.net.links[link].end {
                End::Board(board, port) => {
                    self.deliver_to_board(board, now_ns.saturating_sub(1));
                    let Network { boards, arena, .. } = &mut *self.net;
                    let BoardNode { device, inbox, .. } = &mut boards[board];
                    if !event.is_up {
                        self.lost_on_link_down += inbox.drop_from_link(link as u32, arena);
                    }
                    device.link_state(Instant::from_nanos(now_ns), port, event.is_up);
                    self.collect(board, now_ns);
                }
                End::Controller(controller, _) => {
                    if !event.is_up {
                        let Network {
                            controllers, arena, ..
                        } = &mut *self.net;
                        self.lost_on_link_down += controllers[controller]
                            .inbox
                            .drop_from_link(link as u32, arena);
                        self.arm_arrival(controller);
                    }
                }
                End::Host(_) => {}
            }
        }
    }

    /// Returns whether a link is down when a frame begins on it at `begin_ns`.
    #[inline]
    fn finds_link_down(&self, link: usize, begin_ns: u64) -> bool {
        self.has_link_events
            && self
                .net
                .is_down_at(link, begin_ns.saturating_sub(self.begin_ns))
    }

    fn disarm_source(&mut self, index: usize) {
        self.arm(Timer::Release(index as u32), None);
    }

    /// Sends a source's next frame if its host's link is free; else queues the source.
    fn release(&mut self, index: usize, now_ns: u64) {
        self.prefetch_source(index);
        let origin = self.origins[index];
        let line = origin.line();
        let is_busy = self.net.links[line].busy_until_ns() > now_ns;
        if !is_busy && !self.net.links[line].is_waited_for {
            // Common case: no queue.
            self.send(index, origin, now_ns);
            return self.arm_source(index, line);
        }
        self.release_queued(index, origin, is_busy, now_ns);
    }

    /// Releases a frame to a link that is busy or has a queue of sources.
    #[inline(never)]
    fn release_queued(&mut self, index: usize, origin: Origin, is_busy: bool, now_ns: u64) {
        let line = origin.line();
        match self.waiting[origin.host()].front() {
            None => {
                self.queue_source(index, origin);
                self.arm_source(index, line);
            }
            Some(first) if is_busy || *first as usize != index => {
                self.queue_source(index, origin);
                self.disarm_source(index);
            }
            Some(_) => {
                let next = self.dequeue_waiting(origin);
                self.send(index, origin, now_ns);
                if let Some(next) = next {
                    // The source that waits goes before this one's next frame.
                    self.arm_source(next, line);
                }
                self.arm_source(index, line);
            }
        }
    }

    /// Queues a source behind those that wait for the host's link already.
    fn queue_source(&mut self, index: usize, origin: Origin) {
        self.waiting[origin.host()].push_back(index as u32);
        self.net.links[origin.line()].is_waited_for = true;
    }

    /// Dequeues the first source that waits for a host's link. Returns the next one.
    fn dequeue_waiting(&mut self, origin: Origin) -> Option<usize> {
        let waiting = &mut self.waiting[origin.host()];
        waiting.pop_front();
        let next = waiting.front().map(|next| *next as usize);
        self.net.links[origin.line()].is_waited_for = next.is_some();
        next
    }

    /// Sends a source's frame on its host's link, which is free.
    fn send(&mut self, index: usize, origin: Origin, now_ns: u64) {
        let line = origin.line();
        let Network {
            links,
            sources,
            flows,
            ..
        } = &mut *self.net;
        let (source, flow) = (&mut sources[index], &mut flows[index]);
        source.release(now_ns);
        links[line].occupy(now_ns, source.frame_bytes());
        let sequence = flow.send(signed_difference_ns(now_ns, self.begin_ns));
        let payload = Payload::SourceFrame {
            source: index as u32,
            sequence,
        };
        // A frame with a flow key carries IPv4.
        let is_pause =
            !self.source_traits[index].has_constant_key && is_pause_frame(flow.frame(sequence));
        let frame = InFlightFrame::new(payload, flow.data_bytes(), is_pause);
        self.transmit(line, now_ns, frame);
    }

    /// Adds a frame to its receiver's inbox and arms the receiver's timer.
    #[inline(always)]
    fn enqueue_arrival(&mut self, frame: InFlightFrame) {
        match self.net.enqueue_arrival(frame, self.now_ns) {
            Some(End::Board(board, _)) => self.arm_board(board, self.now_ns),
            Some(End::Controller(controller, _)) => self.arm_arrival(controller),
            _ => {}
        }
    }

    /// Hands a board the frames that have arrived by `until_ns`, each stamped with its arrival.
    fn deliver_to_board(&mut self, board: usize, until_ns: u64) {
        let Network {
            boards,
            flows,
            arena,
            ..
        } = &mut *self.net;
        let BoardNode { device, inbox, .. } = &mut boards[board];
        while let Some(frame) = inbox.pop_arrived(until_ns) {
            let at = Instant::from_nanos(frame.arrival_ns);
            let data = into_bytes(frame.payload(), flows, arena, &mut self.buffer_pool);
            device.frame(at, frame.port, data);
        }
    }

    /// Hands a controller its next frame.
    fn deliver_to_controller(&mut self, index: usize, now_ns: u64) {
        let Network {
            controllers,
            flows,
            arena,
            ..
        } = &mut *self.net;
        let controller = &mut controllers[index];
        let Some(frame) = controller.inbox.pop_arrived(now_ns) else {
            return;
        };
        let data = into_bytes(frame.payload(), flows, arena, &mut self.buffer_pool);
        controller.receive(now_ns, frame.port, data);
        self.arm_arrival(index);
        self.collect_controller(index, now_ns);
    }

    fn arm_arrival(&mut self, controller: usize) {
        let next = self.net.controllers[controller].inbox.first();
        let at_ns = next.map(|frame| frame.arrival_ns);
        self.arm(Timer::Arrival(controller as u32), at_ns);
    }

    /// Delivers the controller's next segment to its board, or sends it there.
    fn answer(&mut self, board: usize, now_ns: u64) {
        let next = self.net.boards[board].session.take_next();
        if let Some(bytes) = next {
            if let Some((address, controller)) = self.net.controller_of(board) {
                self.net.controllers[controller].send(now_ns, address, &bytes);
                self.collect_controller(controller, now_ns);
            } else {
                self.deliver_to_board(board, now_ns.saturating_sub(1));
                let BoardNode {
                    device, session, ..
                } = &mut self.net.boards[board];
                session.record(now_ns, false, &bytes);
                device.segment(Instant::from_nanos(now_ns), &bytes);
            }
        }
        self.arm_answer(board);
        self.collect(board, now_ns);
    }

    /// Drains a board's outputs and arms its timer.
    fn collect(&mut self, board: usize, now_ns: u64) {
        while let Some(output) = self.net.boards[board].device.poll_output() {
            let at_ns = output.at.as_nanos();
            match output.kind {
                DeviceOutputKind::Frame { ports, data } => {
                    let mut ports = ports.iter();
                    let last = ports.next();
                    for port in ports {
                        let link = self.egress_links.link(board, port);
                        let copy = InFlightFrame::of_bytes(data.clone(), &mut self.net.arena);
                        self.transmit_from_board(board, link, at_ns, copy);
                    }
                    if let Some(port) = last {
                        let link = self.egress_links.link(board, port);
                        let frame = InFlightFrame::of_bytes(data, &mut self.net.arena);
                        self.transmit_from_board(board, link, at_ns, frame);
                    }
                }
                output if self.net.steps.is_some() => self.emit(board, at_ns, output),
                DeviceOutputKind::Controller(bytes) => {
                    self.net.boards[board].session.record(at_ns, true, &bytes);
                    self.answer_echo(board, at_ns, &bytes);
                }
                DeviceOutputKind::Event(report) => self.report(board, at_ns, report),
                DeviceOutputKind::Close => {
                    let report = DeviceReport {
                        text: "the board closed its control session".into(),
                        is_deviation: false,
                    };
                    self.report(board, at_ns, report);
                }
                DeviceOutputKind::Connect => {}
            }
        }
        self.arm_board(board, now_ns);
    }

    /// Hands an output to the caller that steps the network.
    fn emit(&mut self, board: usize, at_ns: u64, output: DeviceOutputKind) {
        if let Some(steps) = &mut self.net.steps {
            steps.board_output(at_ns, &self.net.boards[board].name, output);
        }
    }

    /// Transmits a frame of a board at `at_ns` by the link of a port, if there is one.
    #[inline(always)]
    fn transmit_from_board(
        &mut self,
        board: usize,
        link: Option<usize>,
        at_ns: u64,
        frame: InFlightFrame,
    ) {
        match link {
            Some(link) => self.transmit(link, at_ns, frame),
            None => self.unconnected[board] += 1,
        }
    }

    /// Drops a frame and recycles its buffer.
    fn drop_frame(&mut self, frame: InFlightFrame) {
        if let Payload::Bytes(id) = frame.payload() {
            self.buffer_pool.push(self.net.arena.remove(id));
        }
    }

    /// Transmits a frame on a link at `begin_ns`. The sender makes sure that frames on a link do not overlap.
    #[inline(always)]
    fn transmit(&mut self, index: usize, begin_ns: u64, frame: InFlightFrame) {
        if self.finds_link_down(index, begin_ns) {
            self.lost_on_link_down += 1;
            return self.drop_frame(frame);
        }
        if self.net.capture.is_some() {
            self.capture(index, begin_ns, &frame);
        }
        let link = &self.net.links[index];
        if let End::Host(host) = link.end {
            let begin_ns = begin_ns + link.timing.propagation_ns();
            return match frame.payload() {
                Payload::SourceFrame { source, sequence } => {
                    self.deliver_source_frame(host, begin_ns, source as usize, sequence);
                }
                Payload::Bytes(id) => {
                    let data = self.net.arena.remove(id);
                    self.deliver_to_host(host, begin_ns, &data);
                    self.buffer_pool.push(data);
                }
            };
        }
        let arrival_ns = link.arrival_ns(begin_ns, size_on_wire(frame.bytes.into()));
        self.enqueue_arrival(frame.on_link(arrival_ns, index, link.end));
    }

    /// Keeps a frame that begins on a link at `begin_ns`.
    #[cold]
    fn capture(&mut self, link: usize, begin_ns: u64, frame: &InFlightFrame) {
        let Network {
            flows,
            arena,
            capture,
            ..
        } = &mut *self.net;
        let data = match frame.payload() {
            Payload::SourceFrame { source, sequence } => flows[source as usize].frame(sequence),
            Payload::Bytes(id) => arena.get(id),
        };
        if let Some(frames) = capture {
            frames.push(FrameOnLink {
                link,
                begin_ns,
                data: data.to_vec(),
            });
        }
    }

    /// Delivers an unmodified frame of a source to a host; its first bit passes the tap at `begin_ns`.
    #[inline]
    fn deliver_source_frame(&mut self, host: usize, begin_ns: u64, source: usize, sequence: u32) {
        let is_plain = self.source_traits[source].is_identifiable
            && begin_ns <= self.end_ns
            && (self.net.connections.is_empty() || self.net.hosts[host].tcp.is_empty());
        if is_plain {
            let at_ns = signed_difference_ns(begin_ns, self.begin_ns);
            return self.net.flows[source].receive_unchanged(host, at_ns, sequence);
        }
        let mut data = self.buffer_pool.pop().unwrap_or_default();
        data.clear();
        data.extend_from_slice(self.net.flows[source].frame(sequence));
        self.deliver_to_host(host, begin_ns, &data);
        self.buffer_pool.push(data);
    }

    /// Delivers a frame to a host; its first bit passes the tap at `begin_ns`.
    fn deliver_to_host(&mut self, host: usize, begin_ns: u64, data: &[u8]) {
        if let Some(steps) = &mut self.net.steps {
            steps.received(begin_ns, &self.net.hosts[host].name, data);
        } else if begin_ns > self.end_ns {
            self.in_flight += 1;
        } else if self.deliver_tcp(host, begin_ns, data) {
            // It belongs to a transfer.
        } else if !self.identities.receive(
            &mut self.net.flows,
            host,
            signed_difference_ns(begin_ns, self.begin_ns),
            data,
        ) {
            self.unidentified += 1;
        }
    }

    /// Answers echo requests, as a controller does.
    fn answer_echo(&mut self, board: usize, at_ns: u64, bytes: &[u8]) {
        if let Some(reply) = echo_replies(bytes) {
            let answers = &mut self.net.boards[board].session.answers;
            answers.push_back((at_ns + ECHO_DELAY_NS, reply));
            self.arm_answer(board);
        }
    }

    fn report(&mut self, board: usize, at_ns: u64, report: DeviceReport) {
        let log = if report.is_deviation {
            &mut self.deviations
        } else {
            &mut self.events
        };
        log.push(RunEvent {
            at_ns: signed_difference_ns(at_ns, self.begin_ns),
            board: self.net.boards[board].name.clone(),
            text: report.text,
        });
    }

    /// Hands all boards the frames that have arrived, where the run ends or pauses.
    fn deliver_pending(&mut self) {
        for board in 0..self.net.boards.len() {
            self.deliver_to_board(board, self.end_ns);
        }
    }

    fn finish(mut self) -> RunResult {
        self.deliver_pending();
        let Network {
            boards,
            controllers,
            sources,
            flows,
            connections,
            ..
        } = self.net;
        let inboxes = boards.iter().map(|node| &node.inbox);
        let inboxes = inboxes.chain(controllers.iter().map(|controller| &controller.inbox));
        let in_flight: u64 = inboxes.map(|inbox| inbox.len() as u64).sum();
        for (flow, source) in flows.iter_mut().zip(sources.iter_mut()) {
            flow.counters.unsent = source.finish();
            flow.counters.offered = source.counters.offered;
            flow.counters.dropped_at_sender = source.counters.dropped;
        }
        let mut flows: Vec<_> = flows.iter_mut().map(FlowResult::take).collect();
        flows.extend(connections.iter_mut().map(FlowResult::of_connection));
        let packets = flows.iter().map(|flow| flow.counters.sent).sum();
        flows.sort_by_key(|flow| flow.flow);
        let board_result = |(node, unconnected): (&BoardNode, u64)| BoardResult {
            name: node.name.clone(),
            counters: node.device.counters(),
            unconnected,
        };
        let (events, events_omitted) = self.events.finish();
        let (deviations, deviations_omitted) = self.deviations.finish();
        RunResult {
            flows,
            tcp: connections.iter_mut().map(TcpConnection::finish).collect(),
            boards: boards
                .iter()
                .zip(self.unconnected)
                .map(board_result)
                .collect(),
            packets,
            unidentified: self.unidentified,
            in_flight: self.in_flight + in_flight,
            lost_on_link_down: self.lost_on_link_down,
            events,
            events_omitted,
            deviations,
            deviations_omitted,
        }
    }
}

/// From `earlier_ns` to `at_ns`; negative before it.
#[allow(clippy::cast_possible_wrap)] // instants stay below 2^62
fn signed_difference_ns(at_ns: u64, earlier_ns: u64) -> i64 {
    at_ns as i64 - earlier_ns as i64
}

/// Returns the bytes of a frame; takes a buffer from `buffer_pool`.
fn into_bytes(
    payload: Payload,
    flows: &mut [TrafficFlow],
    arena: &mut FrameArena,
    buffer_pool: &mut Vec<Vec<u8>>,
) -> Vec<u8> {
    match payload {
        Payload::SourceFrame { source, sequence } => {
            let mut data = buffer_pool.pop().unwrap_or_default();
            data.clear();
            data.extend_from_slice(flows[source as usize].frame(sequence));
            data
        }
        Payload::Bytes(id) => arena.remove(id),
    }
}
