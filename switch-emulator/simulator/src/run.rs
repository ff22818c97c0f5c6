//! The event loop.

mod control_network;
mod stepping;
mod transfers;

use zodiac_firmware::{is_pause_frame, Head, Instant, Kept};

use crate::controller::{echo_replies, ECHO_DELAY_NS};
use crate::device::{Device, OutputKind};
use crate::error::Error;
use crate::flow::{Flow, Identities};
use crate::inbox::{Cargo, Frame};
use crate::link::{size_on_wire, End};
use crate::network::{BoardNode, BoardTimer, Network};
use crate::result::{BoardResult, FlowResult, RunEvent, RunResult};
use crate::schedule::{Schedule, Slot};
use crate::store::Store;
use crate::tcp::{Connection, Side};

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
        let begin_ns = self.now_ns();
        let mut run = Run::new(self, begin_ns + duration_ns + drain_ns);
        run.start_sources(duration_ns);
        run.start_controllers();
        run.has_changes = !run.net.cable_changes.is_empty();
        run.arm_cables();
        run.carry();
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

/// What a timer stands for, by index in the network. Eight bytes, so that those of large networks stay in the processor's
/// cache.
#[derive(Debug, Clone, Copy)]
enum Timer {
    /// A board has something to do, on its own or with a frame that has arrived.
    Work(u32),
    /// The controller's next answer reaches its board.
    Answer(u32),
    /// A controller on a network has something to do.
    Stack(u32),
    /// A frame arrives at a controller.
    Arrival(u32),
    /// A source's next frame is due on its host's line.
    Release(u32),
    /// One side of a transfer over TCP has something to do.
    Transfer(u32, Side),
    /// A cable is plugged in or pulled out.
    Cable,
}

impl Network {
    /// All timers, with those of a board next to each other.
    fn timers(&self) -> Vec<Timer> {
        // They are no more than timers can be told apart.
        let each = |count: usize| 0..count as u32;
        let boards = each(self.boards.len());
        let mut timers: Vec<_> = boards.clone().map(Timer::Work).collect();
        timers.extend(each(self.sources.len()).map(Timer::Release));
        timers.sort_by_key(|timer| match *timer {
            Timer::Work(board) => board as usize,
            Timer::Release(source) => match self.links[self.line_of(source as usize)].end {
                End::Board(board, _) => board,
                End::Host(_) | End::Controller(..) => self.boards.len(),
            },
            Timer::Answer(_)
            | Timer::Stack(_)
            | Timer::Arrival(_)
            | Timer::Transfer(..)
            | Timer::Cable => self.boards.len(),
        });
        timers.extend(boards.map(Timer::Answer));
        for controller in each(self.controllers.len()) {
            timers.extend([Timer::Stack(controller), Timer::Arrival(controller)]);
        }
        for connection in each(self.connections.len()) {
            timers.extend(
                [Side::Sender, Side::Receiver].map(|side| Timer::Transfer(connection, side)),
            );
        }
        timers.push(Timer::Cable);
        timers
    }

    /// A frame sets out at `now_ns` to a board or controller. Returns that if the frame will arrive there before all others.
    #[inline(always)]
    fn set_out(&mut self, frame: Frame, now_ns: u64) -> Option<End> {
        let link = &mut self.links[frame.link as usize];
        let end = link.end;
        let inbox = match end {
            End::Board(board, _) => &mut self.boards[board].inbox,
            End::Controller(controller, _) => &mut self.controllers[controller].inbox,
            End::Host(_) => return None,
        };
        inbox.push(frame, link, now_ns).then_some(end)
    }

    /// The line of a source's host, a link.
    fn line_of(&self, source: usize) -> usize {
        let host = &self.hosts[self.flows[source].from];
        host.link.expect("add_source refuses hosts without a link")
    }

    fn origin(&self, source: usize, identities: &Identities) -> Origin {
        let flow = &self.flows[source];
        Origin {
            head: flow.head(),
            host: flow.from as u32,
            line: self.line_of(source) as u32,
            is_certain: identities.are_certain(&self.flows, source),
        }
    }
}

/// What all frames of a source have in common. It fills a line of the processor's cache: where frames pass, neither their
/// flow nor their bytes need to be looked at.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Origin {
    /// What they begin with, if that does not depend on their number.
    head: Option<Head>,
    /// Where they begin, by index in the network.
    host: u32,
    /// The line of that host, a link.
    line: u32,
    /// Whether they are certain to be recognised as the flow's own as long as nothing changes them.
    is_certain: bool,
}

const _: () = assert!(size_of::<Origin>() == 64);

impl Origin {
    #[inline(always)]
    const fn host(self) -> usize {
        self.host as usize
    }

    #[inline(always)]
    const fn line(self) -> usize {
        self.line as usize
    }
}

/// The links by which frames leave boards: close together, where they stay in the processor's cache.
struct Outgoing {
    /// For so many ports of each board.
    ports: usize,
    links: Vec<u32>,
}

impl Outgoing {
    /// In place of a link, for a port without a cable.
    const NONE: u32 = u32::MAX;

    fn of(boards: &[BoardNode]) -> Self {
        let ports = boards.iter().map(|node| node.links.len()).max();
        let ports = ports.unwrap_or(0);
        let mut links = vec![Self::NONE; boards.len() * ports];
        for (board, node) in boards.iter().enumerate() {
            for (port, link) in node.links.iter().enumerate() {
                links[board * ports + port] = link.map_or(Self::NONE, |link| link as u32);
            }
        }
        Self { ports, links }
    }

    /// The link of a board's port, which counts from 1.
    #[inline(always)]
    fn link(&self, board: usize, port: u8) -> Option<usize> {
        let link = self.links[board * self.ports + usize::from(port) - 1];
        (link != Self::NONE).then_some(link as usize)
    }
}

/// Slots of the timers in the schedule.
#[derive(Default)]
struct Slots {
    answer: Vec<Slot>,
    stack: Vec<Slot>,
    arrival: Vec<Slot>,
    release: Vec<Slot>,
    transfer: Vec<[Slot; 2]>,
    cable: Slot,
}

impl Slots {
    fn of(net: &mut Network, timers: &[Timer]) -> Self {
        let mut slots = Self {
            release: vec![0; net.sources.len()],
            transfer: vec![[0; 2]; net.connections.len()],
            ..Self::default()
        };
        for (slot, timer) in (0..).zip(timers) {
            match *timer {
                Timer::Work(board) => {
                    net.boards[board as usize].timer = BoardTimer::new(slot);
                }
                Timer::Answer(_) => slots.answer.push(slot),
                Timer::Stack(_) => slots.stack.push(slot),
                Timer::Arrival(_) => slots.arrival.push(slot),
                Timer::Release(source) => slots.release[source as usize] = slot,
                Timer::Transfer(index, side) => {
                    slots.transfer[index as usize][side as usize] = slot;
                }
                Timer::Cable => slots.cable = slot,
            }
        }
        slots
    }
}

/// A run under way.
struct Run<'a> {
    net: &'a mut Network,
    schedule: Schedule,
    identities: Identities,
    /// For each source.
    origins: Vec<Origin>,
    outgoing: Outgoing,
    /// What each slot of the schedule stands for. Timers of a board are next to each other, and so are their keys in memory.
    timers: Vec<Timer>,
    slots: Slots,
    /// Memory of frames that have arrived at hosts, to be used again: the last one first, as it is still in the processor's
    /// cache.
    spare: Vec<Vec<u8>>,
    begin_ns: u64,
    now_ns: u64,
    end_ns: u64,
    events: Vec<RunEvent>,
    events_omitted: u64,
    unidentified: u64,
    in_flight: u64,
    cut: u64,
    /// Whether changes of cables are planned for this run; false in what precedes the run.
    has_changes: bool,
    unconnected: Vec<u64>,
}

const _: () = assert!(size_of::<Timer>() == 8);

impl<'a> Run<'a> {
    fn new(net: &'a mut Network, end_ns: u64) -> Self {
        let boards = net.boards.len();
        let timers = net.timers();
        let slots = Slots::of(net, &timers);
        let begin_ns = net.now_ns();
        let identities = Identities::new(&net.flows);
        let mut run = Self {
            schedule: Schedule::new(timers.len()),
            outgoing: Outgoing::of(&net.boards),
            origins: (0..net.sources.len())
                .map(|source| net.origin(source, &identities))
                .collect(),
            identities,
            timers,
            spare: Vec::new(),
            slots,
            begin_ns,
            now_ns: begin_ns,
            end_ns,
            events: Vec::new(),
            events_omitted: 0,
            unidentified: 0,
            in_flight: 0,
            cut: 0,
            has_changes: false,
            unconnected: vec![0; boards],
            net,
        };
        for board in 0..boards {
            for (at_ns, text) in std::mem::take(&mut run.net.boards[board].session.events) {
                run.report(board, at_ns, text);
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
            self.net.sources[index].start(self.begin_ns, end_ns);
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

    /// Does everything until the end, in order of time.
    fn carry(&mut self) {
        while self.step() {}
    }

    /// Does everything for a while.
    fn carry_for(&mut self, duration_ns: u64) {
        self.end_ns = self.now_ns + duration_ns;
        self.carry();
        self.now_ns = self.end_ns;
    }

    /// Does what comes next; false if nothing does before the end.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let Some((now_ns, slot)) = self.schedule.first() else {
            return false;
        };
        if now_ns > self.end_ns {
            return false;
        }
        self.now_ns = now_ns;
        match self.timers[slot as usize] {
            Timer::Work(board) => self.work(board as usize, now_ns),
            Timer::Answer(board) => self.answer(board as usize, now_ns),
            Timer::Stack(controller) => {
                let controller = controller as usize;
                self.net.controllers[controller].work(now_ns);
                self.collect_controller(controller, now_ns);
            }
            Timer::Arrival(controller) => self.arrive(controller as usize, now_ns),
            Timer::Release(source) => self.release(source as usize, now_ns),
            Timer::Transfer(index, side) => self.transfer(index as usize, side, now_ns),
            Timer::Cable => self.change_cable(now_ns),
        }
        true
    }

    /// A board does what is due.
    #[inline]
    fn work(&mut self, board: usize, now_ns: u64) {
        if self.pass_on(board, now_ns) {
            return self.arm_board(board, now_ns);
        }
        self.take_in(board, now_ns);
        let device = &mut self.net.boards[board].device;
        device.advance(Instant::from_nanos(now_ns));
        self.collect(board, now_ns);
    }

    /// Lets the frame that has arrived first pass a board in one step; false if it cannot.
    #[inline]
    fn pass_on(&mut self, board: usize, now_ns: u64) -> bool {
        // A caller that advances step by step may look at the boards between two steps: no work is skipped.
        if self.net.steps.is_some() {
            return false;
        }
        let Network {
            boards,
            flows,
            store,
            ..
        } = &mut *self.net;
        let BoardNode { device, inbox, .. } = &mut boards[board];
        let Device::Board(firmware) = device else {
            return false;
        };
        let Some((first, behind)) = inbox.all_arrived(now_ns) else {
            return false;
        };
        let head = match first.cargo {
            Cargo::Emission { source, sequence } => self.origins[source as usize]
                .head
                .or_else(|| Head::read(flows[source as usize].frame(sequence))),
            Cargo::Bytes(place) => Head::read(store.bytes(place)),
        };
        let Some(head) = head else {
            return false;
        };
        let now = Instant::from_nanos(now_ns);
        let waiting = behind.len();
        let Some(passage) = firmware.pass_on(now, first, &head, behind) else {
            return false;
        };
        if let Some(frame) = inbox.take_first(waiting) {
            let link = self.outgoing.link(board, passage.port.get());
            self.depart(board, link, passage.departs.as_nanos(), frame);
        }
        true
    }

    #[inline(always)]
    fn arm(&mut self, slot: Slot, at_ns: Option<u64>) {
        self.schedule.arm(slot, at_ns);
    }

    fn arm_board(&mut self, board: usize, now_ns: u64) {
        let is_stepping = self.net.steps.is_some();
        let BoardNode {
            device,
            inbox,
            timer,
            ..
        } = &mut self.net.boards[board];
        let mut due = device.poll_at().unwrap_or(Instant::NEVER);
        if let Some(frame) = inbox.first() {
            let arrival = Instant::from_nanos(frame.arrival_ns);
            // A caller that advances step by step may look at the boards between two steps: no frame is kept back.
            due = due.min(if frame.is_pause || is_stepping {
                arrival
            } else {
                device.due_with(arrival, frame.port, frame.bytes.into())
            });
        }
        if let Some(frame) = inbox.first_behind_waiting() {
            if !device.keeps(&frame.kept()) {
                due = due.min(Instant::from_nanos(frame.arrival_ns));
            }
        }
        let due = due.max(Instant::from_nanos(now_ns));
        // A frame that comes while the CPU works does not change when the next pass begins.
        if due != timer.due {
            timer.due = due;
            let at_ns = (due != Instant::NEVER).then_some(due.as_nanos());
            self.schedule.arm(timer.slot, at_ns);
        }
    }

    fn arm_answer(&mut self, board: usize) {
        let next_ns = self.net.boards[board].session.next_ns();
        self.arm(self.slots.answer[board], next_ns);
    }

    /// `line` is that of the source's host.
    #[inline]
    fn arm_source(&mut self, index: usize, line: usize) {
        let line = &self.net.links[line];
        let at_ns = self.net.sources[index].next_release_ns(line.busy_until_ns());
        self.arm(self.slots.release[index], at_ns);
    }

    fn arm_cables(&mut self) {
        let next = self.net.cable_changes.front();
        let at_ns = next.map(|change| self.begin_ns + change.at_ns);
        self.arm(self.slots.cable, at_ns);
    }

    /// A cable is plugged in or pulled out; boards at its ends see it, and what was on it is lost.
    fn change_cable(&mut self, now_ns: u64) {
        let Some(change) = self.net.cable_changes.pop_front() else {
            return;
        };
        self.arm_cables();
        for link in change.links() {
            self.net.links[link].is_out = !change.is_in;
            match self.net.links[link].end {
                End::Board(board, port) => {
                    self.take_in(board, now_ns.saturating_sub(1));
                    let Network { boards, store, .. } = &mut *self.net;
                    let BoardNode { device, inbox, .. } = &mut boards[board];
                    if !change.is_in {
                        self.cut += inbox.cut(link as u32, store);
                    }
                    device.link_state(Instant::from_nanos(now_ns), port, change.is_in);
                    self.collect(board, now_ns);
                }
                End::Controller(controller, _) => {
                    if !change.is_in {
                        let Network {
                            controllers, store, ..
                        } = &mut *self.net;
                        self.cut += controllers[controller].inbox.cut(link as u32, store);
                        self.arm_arrival(controller);
                    }
                }
                End::Host(_) => {}
            }
        }
    }

    /// Whether a frame that begins on a link at `begin_ns` finds no cable.
    #[inline]
    fn is_cut(&self, link: usize, begin_ns: u64) -> bool {
        self.has_changes
            && self
                .net
                .is_out(link, begin_ns.saturating_sub(self.begin_ns))
    }

    fn disarm_source(&mut self, index: usize) {
        self.arm(self.slots.release[index], None);
    }

    /// A source's next frame is due on its host's line: sends it, or lets it wait for its turn.
    fn release(&mut self, index: usize, now_ns: u64) {
        let origin = self.origins[index];
        let line = origin.line();
        let is_busy = self.net.links[line].busy_until_ns() > now_ns;
        let waiting = &mut self.net.hosts[origin.host()].waiting;
        match waiting.front().copied() {
            None if is_busy => {
                waiting.push_back(index);
                self.arm_source(index, line);
            }
            Some(first) if is_busy || first != index => {
                waiting.push_back(index);
                self.disarm_source(index);
            }
            _ => {
                waiting.pop_front();
                let next = waiting.front().copied();
                self.send(index, origin, now_ns);
                if let Some(next) = next {
                    // The source that waits goes before this one's next frame.
                    self.arm_source(next, line);
                }
                self.arm_source(index, line);
            }
        }
    }

    /// A source's frame begins on its host's line, which is free.
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
        let cargo = Cargo::Emission {
            source: index as u32,
            sequence,
        };
        // What has a head carries IPv4.
        let is_pause = origin.head.is_none() && is_pause_frame(flow.frame(sequence));
        let frame = Frame::new(cargo, flow.data_bytes(), is_pause);
        self.launch(line, now_ns, frame);
    }

    /// A frame sets out to a board or controller.
    #[inline(always)]
    fn set_out(&mut self, frame: Frame) {
        match self.net.set_out(frame, self.now_ns) {
            Some(End::Board(board, _)) => self.arm_board(board, self.now_ns),
            Some(End::Controller(controller, _)) => self.arm_arrival(controller),
            _ => {}
        }
    }

    /// Gives a board the frames that have arrived until `until_ns`, each with its instant.
    fn take_in(&mut self, board: usize, until_ns: u64) {
        let Network {
            boards,
            flows,
            store,
            ..
        } = &mut *self.net;
        let BoardNode { device, inbox, .. } = &mut boards[board];
        while let Some(frame) = inbox.arrived(until_ns) {
            let at = Instant::from_nanos(frame.arrival_ns);
            let data = written_out(frame.cargo, flows, store, &mut self.spare);
            device.frame(at, frame.port, data);
        }
    }

    /// The frame that is next for a controller arrives there.
    fn arrive(&mut self, index: usize, now_ns: u64) {
        let Network {
            controllers,
            flows,
            store,
            ..
        } = &mut *self.net;
        let controller = &mut controllers[index];
        let Some(frame) = controller.inbox.arrived(now_ns) else {
            return;
        };
        let data = written_out(frame.cargo, flows, store, &mut self.spare);
        controller.receive(now_ns, frame.port, data);
        self.arm_arrival(index);
        self.collect_controller(index, now_ns);
    }

    fn arm_arrival(&mut self, controller: usize) {
        let next = self.net.controllers[controller].inbox.first();
        let at_ns = next.map(|frame| frame.arrival_ns);
        self.arm(self.slots.arrival[controller], at_ns);
    }

    /// The controller's next segment reaches its board, or leaves for it.
    fn answer(&mut self, board: usize, now_ns: u64) {
        let next = self.net.boards[board].session.take_next();
        if let Some(bytes) = next {
            if let Some((address, controller)) = self.net.controller_of(board) {
                self.net.controllers[controller].send(now_ns, address, &bytes);
                self.collect_controller(controller, now_ns);
            } else {
                self.take_in(board, now_ns.saturating_sub(1));
                let device = &mut self.net.boards[board].device;
                device.segment(Instant::from_nanos(now_ns), &bytes);
            }
        }
        self.arm_answer(board);
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
                        let link = self.outgoing.link(board, port);
                        let copy = Frame::of_bytes(data.clone(), &mut self.net.store);
                        self.depart(board, link, at_ns, copy);
                    }
                    if let Some(port) = last {
                        let link = self.outgoing.link(board, port);
                        let frame = Frame::of_bytes(data, &mut self.net.store);
                        self.depart(board, link, at_ns, frame);
                    }
                }
                said if self.net.steps.is_some() => self.tell(board, at_ns, said),
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

    /// Gives what a board says to the caller that advances the network.
    fn tell(&mut self, board: usize, at_ns: u64, said: OutputKind) {
        if let Some(steps) = &mut self.net.steps {
            steps.told(at_ns, &self.net.boards[board].name, said);
        }
    }

    /// A frame begins to leave a board at `at_ns`, by the link of a port, if there is one.
    #[inline(always)]
    fn depart(&mut self, board: usize, link: Option<usize>, at_ns: u64, frame: Frame) {
        match link {
            Some(link) => self.launch(link, at_ns, frame),
            None => self.unconnected[board] += 1,
        }
    }

    /// Nothing needs a frame any more.
    fn lose(&mut self, frame: Frame) {
        if let Cargo::Bytes(place) = frame.cargo {
            self.spare.push(self.net.store.take(place));
        }
    }

    /// A frame begins on a link at `begin_ns`. It is up to the sender that frames on a link do not overlap.
    #[inline(always)]
    fn launch(&mut self, index: usize, begin_ns: u64, frame: Frame) {
        if self.is_cut(index, begin_ns) {
            self.cut += 1;
            return self.lose(frame);
        }
        let link = &self.net.links[index];
        if let End::Host(host) = link.end {
            let begin_ns = begin_ns + link.timing.propagation_ns();
            return match frame.cargo {
                Cargo::Emission { source, sequence } => {
                    self.deliver_emission(host, begin_ns, source as usize, sequence);
                }
                Cargo::Bytes(place) => {
                    let data = self.net.store.take(place);
                    self.deliver(host, begin_ns, &data);
                    self.spare.push(data);
                }
            };
        }
        let arrival_ns = link.arrival_ns(begin_ns, size_on_wire(frame.bytes.into()));
        self.set_out(frame.bound(arrival_ns, index, link.end));
    }

    /// The beginning of a source's frame, as it was sent, passes a host's tap at `begin_ns`.
    #[inline]
    fn deliver_emission(&mut self, host: usize, begin_ns: u64, source: usize, sequence: u32) {
        let is_plain = self.origins[source].is_certain
            && begin_ns <= self.end_ns
            && (self.net.connections.is_empty() || self.net.hosts[host].tcp.is_empty());
        if is_plain {
            let at_ns = signed_difference_ns(begin_ns, self.begin_ns);
            return self.net.flows[source].receive_unchanged(host, at_ns, sequence);
        }
        let mut data = self.spare.pop().unwrap_or_default();
        data.clear();
        data.extend_from_slice(self.net.flows[source].frame(sequence));
        self.deliver(host, begin_ns, &data);
        self.spare.push(data);
    }

    /// The beginning of a frame passes a host's tap at `begin_ns`.
    fn deliver(&mut self, host: usize, begin_ns: u64, data: &[u8]) {
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

    /// Keeps the session alive, as a controller does.
    fn answer_echo(&mut self, board: usize, at_ns: u64, bytes: &[u8]) {
        if let Some(reply) = echo_replies(bytes) {
            let answers = &mut self.net.boards[board].session.answers;
            answers.push_back((at_ns + ECHO_DELAY_NS, reply));
            self.arm_answer(board);
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

    /// Gives all boards what has arrived until now, where the run ends or pauses.
    fn settle(&mut self) {
        for board in 0..self.net.boards.len() {
            self.take_in(board, self.end_ns);
        }
    }

    fn finish(mut self) -> RunResult {
        self.settle();
        self.events.sort_by_key(|event| event.at_ns);
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
        RunResult {
            flows,
            tcp: connections.iter_mut().map(Connection::finish).collect(),
            boards: boards
                .iter()
                .zip(self.unconnected)
                .map(board_result)
                .collect(),
            packets,
            unidentified: self.unidentified,
            in_flight: self.in_flight + in_flight,
            cut: self.cut,
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

/// The bytes of a frame; memory for it is taken from `spare`.
fn written_out(
    cargo: Cargo,
    flows: &mut [Flow],
    store: &mut Store,
    spare: &mut Vec<Vec<u8>>,
) -> Vec<u8> {
    match cargo {
        Cargo::Emission { source, sequence } => {
            let mut data = spare.pop().unwrap_or_default();
            data.clear();
            data.extend_from_slice(flows[source as usize].frame(sequence));
            data
        }
        Cargo::Bytes(place) => store.take(place),
    }
}
