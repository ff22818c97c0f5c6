//! The board: its interface, and the scheduling of its work.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use crate::buffers::{length_with_fcs, ReceiveRing, ReceivedFrame};
use crate::config::{Config, ConfigError};
use crate::console::{Console, ConsoleOutcome};
use crate::event::{Counters, Event};
use crate::integrated_switch::{
    pause_request, BridgingDelay, Egress, FlowControl, Ingress, LearningSwitch, Wire,
};
use crate::loop_iteration::LoopIteration;
use crate::main_loop::MainLoop;
use crate::openflow::Agent;
use crate::openflow13::Flow13;
use crate::outbox::{Outbox, Output, OutputKind, CONTROL_HEADER_BYTES};
use crate::port::{PortMask, PortNumber};
use crate::profile::Profile;
use crate::random::SplitMix;
use crate::settings::{EepromError, EepromImage, Settings};
use crate::table::Flow;
use crate::time::{Duration, Instant};
use crate::work::{FromController, Work};

mod bridging;
mod fast_path;

pub use fast_path::{Deferrable, DeferredFrame, Forwarded};

/// Time between two housekeeping ticks: more than 500 ms on a clock of milliseconds.
const TICK: Duration = Duration::from_millis(501);

/// Shortest frame that a port receives, without FCS, before padding.
const MIN_RECEIVED_BYTES: usize = 14;
/// Longest frame that the CPU's MAC receives, without FCS: 1536 bytes with FCS and tail tag.
const MAX_RECEIVED_BYTES: usize = 1_531;

/// Everything needed to boot a board.
#[derive(Clone, Debug)]
struct Blueprint {
    profile: Profile,
    config: Config,
    seed: u64,
}

/// Next event of the CPU.
#[derive(Debug)]
struct NextEvent {
    /// When the next work other than a frame is due.
    other_at: Instant,
    /// When the loop iteration of the next event begins.
    begins_at: Instant,
    other: Work,
    /// Whether the current iteration leaves `other` unchanged.
    other_unchanged: bool,
    work: Work,
}

impl NextEvent {
    const fn new() -> Self {
        Self {
            other_at: Instant::ZERO,
            begins_at: Instant::ZERO,
            other: Work::Tick,
            other_unchanged: false,
            work: Work::Tick,
        }
    }
}

/// A Zodiac FX.
///
/// Calls take non-decreasing instants; the board is powered up at the instant of the first one. After each call drain
/// the outputs with [`poll_output`](Self::poll_output), and call [`advance`](Self::advance) at
/// [`poll_at`](Self::poll_at). Frames and segments are handled by iterations of the main loop, so their outputs come
/// from a later `advance`.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first: few lines of the processor's cache, one behind the other
pub struct Board {
    booted: bool,
    /// Whether the console logs each piece of work.
    is_tracing: bool,
    front_ports_pause: bool,
    native_ports: PortMask,
    /// Ports that are not the agent's, and whose frames were reported; once is enough.
    reported: PortMask,
    next_event: NextEvent,
    main_loop: MainLoop,
    flow_control: FlowControl,
    ring: ReceiveRing,
    ingress: Ingress,
    out: Outbox,
    agent: Agent,
    tick_at: Instant,
    controls: VecDeque<(Instant, FromController)>,
    learning: LearningSwitch,
    console: Box<Console>,
    /// Kept for restarts.
    blueprint: Box<Blueprint>,
}

impl Board {
    /// A board that is switched off. `seed` draws the phases that `config` leaves open, of the main loop and of the
    /// timers, and the times of frames that the integrated switch forwards by itself.
    ///
    /// # Errors
    /// [`ConfigError`] when `config` contradicts itself.
    pub fn new(profile: &Profile, config: Config, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let settings = Settings::of(&config);
        let blueprint = Blueprint {
            profile: profile.clone(),
            config,
            seed,
        };
        Ok(Self::boot(Box::new(blueprint), settings))
    }

    /// A board that is switched off and has `image` in its EEPROM: what its console has saved counts, the rest is as in
    /// `config`.
    ///
    /// # Errors
    /// [`EepromError`] when no board has saved this image.
    pub fn with_eeprom(self, image: &[u8]) -> Result<Self, EepromError> {
        let settings = Settings::read(image)?;
        Ok(Self::boot(self.blueprint, settings))
    }

    /// A board that has just been switched on, or restarted, and has read `settings` from its EEPROM.
    fn boot(blueprint: Box<Blueprint>, mut settings: Settings) -> Self {
        let Blueprint {
            profile,
            config,
            seed,
        } = &*blueprint;
        let image = Box::new(settings.image());
        let native_ports = settings.boot();
        let config = settings.apply(config, native_ports);
        let wire = Wire::new(profile);
        let mut random = SplitMix::new(*seed);
        let loop_phase = random.below(profile.cpu.loop_ps.unsigned_abs() / 1_000);
        let timer_phase = random.below(profile.cpu.timers.period_ns);
        let loop_phase = config.loop_phase_ns.unwrap_or(loop_phase);
        let timer_phase = config.timer_phase_ns.unwrap_or(timer_phase);
        let stack_seed = random.below(u64::MAX);
        let native_ports: PortMask = config.native_ports.iter().copied().collect();
        let bridging = BridgingDelay::new(profile, random);
        let learning = LearningSwitch::new(&settings.vlans, settings.mac);
        Self {
            agent: Agent::new(profile, &config, stack_seed),
            console: Box::new(Console::new(
                profile.cpu.console.clone().unwrap_or_default(),
                settings,
                image,
            )),
            ingress: Ingress::new(wire, profile),
            learning,
            ring: ReceiveRing::new(&profile.buffer),
            flow_control: FlowControl::new(&profile.flow_control),
            front_ports_pause: profile.flow_control.front_ports == 1,
            controls: VecDeque::new(),
            main_loop: MainLoop::new(
                &profile.cpu,
                Duration::from_nanos(loop_phase),
                Duration::from_nanos(timer_phase),
            ),
            tick_at: Instant::ZERO + TICK,
            out: Outbox::new(Egress::new(wire, profile, bridging), native_ports),
            native_ports,
            booted: false,
            reported: PortMask::EMPTY,
            next_event: NextEvent::new(),
            is_tracing: false,
            blueprint,
        }
    }

    /// Characters typed at the serial console.
    pub fn console(&mut self, now: Instant, typed: &[u8]) {
        self.advance(now);
        self.console.typed(now, typed);
        self.schedule_next();
    }

    /// Returns the EEPROM's contents, for [`with_eeprom`](Self::with_eeprom). They change with [`OutputKind::Eeprom`].
    #[must_use]
    pub const fn eeprom(&self) -> &EepromImage {
        self.console.eeprom()
    }

    /// Returns where the board connects to. The console may change it; then it counts from the next connection on.
    #[must_use]
    pub const fn controller(&self) -> SocketAddrV4 {
        let settings = self.console.settings();
        SocketAddrV4::new(settings.controller_address, settings.controller_port)
    }

    /// As [`controller`](Self::controller), if that is not what `config` says: if the console has changed it, now or before
    /// the configuration was saved.
    #[must_use]
    pub fn redirected(&self) -> Option<SocketAddrV4> {
        let Config {
            controller_address,
            controller_port,
            ..
        } = self.blueprint.config;
        let configured = SocketAddrV4::new(controller_address, controller_port);
        Some(self.controller()).filter(|address| *address != configured)
    }

    /// The TCP session with the controller is established. This and the calls that follow, up to [`segment`](Self::segment),
    /// are for a session that the driver keeps; a board on a network
    /// ([`ControlCarrier::Network`](crate::ControlCarrier::Network)) takes no notice of them.
    pub fn connected(&mut self, now: Instant) {
        self.control(now, FromController::Connected);
    }

    /// The TCP session with the controller is gone, or an attempt has failed.
    pub fn disconnected(&mut self, now: Instant) {
        self.control(now, FromController::Disconnected);
    }

    /// The controller has ended its half of the TCP session. The board's half stays open: until it connects again, a board
    /// in safe mode still writes what its table misses.
    pub fn finished(&mut self, now: Instant) {
        self.control(now, FromController::Finished);
    }

    /// The controller has reset the TCP session.
    pub fn reset(&mut self, now: Instant) {
        self.control(now, FromController::Reset);
    }

    /// A TCP segment of the controller has completely arrived at the native port; `payload` is what it carries. The
    /// firmware reads each segment by itself. It takes the way of a frame to the CPU and waits there with the frames,
    /// but occupies no unit of the receive ring and is never lost.
    pub fn segment(&mut self, now: Instant, payload: &[u8]) {
        self.advance(now);
        if self.agent.is_on_network() {
            return;
        }
        let length = length_with_fcs(CONTROL_HEADER_BYTES + payload.len());
        let at = self.ingress.carry(now, length);
        let payload = payload.to_vec();
        self.controls.push_back((
            at,
            FromController::Segment {
                arrived: now,
                payload,
            },
        ));
        self.schedule_next();
    }

    /// A frame, without FCS, has completely arrived on `port`. Shorter ones are padded to 60 bytes, as on the wire.
    pub fn frame(&mut self, now: Instant, port: PortNumber, frame: &[u8]) {
        let data = self.out.pool.copy(frame);
        self.receive(now, port, data, frame.len());
    }

    /// As [`frame`](Self::frame), without a copy: takes the buffer over.
    #[inline]
    pub fn frame_owned(&mut self, now: Instant, port: PortNumber, mut frame: Vec<u8>) {
        let bytes = frame.len();
        crate::buffers::pad(&mut frame);
        self.receive(now, port, frame, bytes);
    }

    /// Returns the latest instant at which the caller must hand over the next frame to arrive: `bytes` bytes, without
    /// FCS, on `port`, complete at `arrival`. Delivering it earlier with [`frame_owned`](Self::frame_owned), stamped
    /// with `arrival`, is equivalent. Before any other call, the caller must hand over the frames that have arrived by
    /// then. [Pause frames](crate::is_pause_frame) must not be deferred.
    #[must_use]
    #[inline]
    pub fn deliver_by(&mut self, arrival: Instant, port: PortNumber, bytes: usize) -> Instant {
        if !(MIN_RECEIVED_BYTES..=MAX_RECEIVED_BYTES).contains(&bytes) || !self.agent.handles(port)
        {
            return arrival;
        }
        let due = self.due_at();
        if self.next_frame_at().is_some() {
            return due; // those before it come first
        }
        let in_ring = self.ingress.earliest(arrival, length_with_fcs(bytes));
        due.min(self.main_loop.iteration_for(in_ring))
    }

    /// Recycles the buffer of a frame that the driver no longer needs.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        self.out.pool.recycle(frame);
    }

    /// A cable was plugged in or pulled out. All are in at first.
    pub fn link_state(&mut self, now: Instant, port: PortNumber, up: bool) {
        self.advance(now);
        self.agent.set_link(port, up, &mut self.out);
    }

    /// Processes all events that are due by `now`, in order of time.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        if !self.booted {
            self.power_up(now);
        }
        loop {
            let (begins_at, work) = (self.next_event.begins_at, self.next_event.work);
            match self.out.returning_at().filter(|at| *at <= begins_at) {
                Some(at) if at <= now => {
                    self.fill_ring(at);
                    self.out.return_next(self.ingress.room_free_at());
                }
                None if begins_at <= now => {
                    self.next_event.other_unchanged = false;
                    self.run_iteration(begins_at, work);
                    if self.next_event.other_unchanged {
                        self.schedule_frames();
                    } else {
                        self.schedule_next();
                    }
                }
                _ => return,
            }
        }
    }

    fn power_up(&mut self, now: Instant) {
        self.booted = true;
        self.main_loop.power_up(now);
        self.console.power_up(now);
        self.agent.power_up(now, &mut self.out);
        self.tick_at = now + TICK;
        self.schedule_next();
    }

    /// The board restarts at `now`: all is lost but what the EEPROM holds. What lies outside of the CPU stays.
    fn restart(&mut self, now: Instant) {
        let Ok(settings) = Settings::read(self.console.eeprom()) else {
            return; // Never: the board has written it.
        };
        let console = self.blueprint.profile.cpu.console.as_ref();
        let back = now + Duration::from_nanos(console.map_or(0, |costs| costs.restart_ns));
        self.out.push(now, OutputKind::Detach);
        self.out.push(now, OutputKind::Close);
        self.out.push(back, OutputKind::Attach);
        let mut fresh = Self::boot(self.blueprint.clone(), settings);
        fresh.out.take_over(&mut self.out);
        fresh.agent.take_over(&self.agent);
        fresh.reported = self.reported;
        fresh.power_up(back);
        *self = fresh;
    }

    /// Returns when [`advance`](Self::advance) has work next.
    #[must_use]
    #[inline]
    pub fn poll_at(&self) -> Option<Instant> {
        Some(self.due_at())
    }

    #[inline]
    fn due_at(&self) -> Instant {
        let begins_at = self.next_event.begins_at;
        self.out
            .returning_at()
            .map_or(begins_at, |at| begins_at.min(at))
    }

    /// Returns the next output, in the order in which the CPU gave them.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.poll()
    }

    /// Returns whether a port is for the connection to the controller, which need not be on the network.
    #[must_use]
    pub const fn carries_control(&self, port: PortNumber) -> bool {
        self.native_ports.contains(port)
    }

    /// Returns the flow table in its real order.
    #[must_use]
    pub fn flows(&self) -> Vec<Flow> {
        self.agent.counted_flows()
    }

    /// Returns the entries of OpenFlow 1.3 in the order of their list.
    #[must_use]
    pub fn flows13(&self) -> Vec<Flow13> {
        self.agent.flows13()
    }

    /// Returns the OpenFlow version of the session on the wire, 1 or 4; 0 before the controller's HELLO.
    #[must_use]
    pub const fn openflow_version(&self) -> u8 {
        self.agent.version()
    }

    /// Returns whether the board keeps its TCP connection to the controller itself
    /// ([`ControlCarrier::Network`](crate::ControlCarrier::Network)).
    #[must_use]
    pub const fn is_on_network(&self) -> bool {
        self.agent.is_on_network()
    }

    /// Returns whether frames of this port are for the board's own IP stack.
    #[inline]
    const fn is_native(&self, port: PortNumber) -> bool {
        self.carries_control(port) && self.agent.is_on_network()
    }

    /// Returns whether the TCP connection to the controller is established.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.agent.is_established()
    }

    /// Returns the counters of frames since power-up.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = Counters {
            ring_units_peak: self.ring.peak().into(),
            ..self.out.counters
        };
        for deferred in self.agent.deferred_counters() {
            deferred.add_to(&mut counters);
        }
        counters
    }

    fn control(&mut self, now: Instant, control: FromController) {
        self.advance(now);
        if self.agent.is_on_network() {
            return;
        }
        self.controls.push_back((now, control));
        self.schedule_next();
    }

    #[inline]
    fn receive(&mut self, now: Instant, port: PortNumber, data: Vec<u8>, bytes: usize) {
        self.advance(now);
        let native = self.is_native(port);
        if native {
            self.out.counters.native_received += 1;
        } else {
            self.out.counters.received += 1;
        }
        if !(MIN_RECEIVED_BYTES..=MAX_RECEIVED_BYTES).contains(&bytes) {
            self.out.counters.dropped_size += 1;
            self.out.event(
                now,
                Event::FrameMalformed {
                    length_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                },
            );
            return self.out.pool.recycle(data);
        }
        if let Some(quanta) = pause_request(&data) {
            self.out.counters.pauses_received += 1;
            if self.front_ports_pause {
                self.out.egress.pause_port(now, port, quanta);
            }
            return self.out.pool.recycle(data);
        }
        let data = if self.agent.handles(port) {
            data
        } else {
            match self.bridge(now, port, data) {
                Some(for_stack) => for_stack,
                None => return,
            }
        };
        self.fill_ring(now);
        let hardware = &mut self.out.hardware[usize::from(port.get()) - 1];
        hardware.received_bytes += length_with_fcs(data.len()) as u64;
        let at = now;
        let is_next = self.next_frame_at().is_none();
        if let Err(frame) = self.ingress.admit(ReceivedFrame { at, port, data }) {
            self.out.hardware[port.index()].received_dropped += 1;
            self.out.counters.dropped_switch += 1;
            return self.out.pool.recycle(frame.data);
        }
        // A frame behind others does not change what comes next.
        if is_next {
            self.schedule_frames();
        }
    }

    /// Finds the earliest pending work and the loop iteration that will find it.
    fn schedule_next(&mut self) {
        let mut arrival = self.tick_at;
        let mut work = Work::Tick;
        if let Some((at, _)) = self.controls.front() {
            if *at < arrival {
                (arrival, work) = (*at, Work::Control);
            }
        }
        if let Some(at) = self.stack_due_at() {
            if at < arrival {
                (arrival, work) = (at, Work::Stack);
            }
        }
        if let Some(at) = self.console.pending_at() {
            if at < arrival {
                (arrival, work) = (at, Work::Console);
            }
        }
        self.next_event.other_at = arrival;
        self.next_event.other = work;
        self.is_tracing = self.console.is_tracing();
        self.schedule_frames();
    }

    /// As [`schedule_next`](Self::schedule_next), if only frames have changed.
    #[inline]
    fn schedule_frames(&mut self) {
        match self.next_frame_at() {
            Some(at) if at <= self.next_event.other_at => self.schedule_iteration(at, Work::Frame),
            _ => self.schedule_other(),
        }
    }

    /// As [`schedule_frames`](Self::schedule_frames), if none is on its way to the ring or in it.
    #[inline(always)]
    fn schedule_other(&mut self) {
        self.schedule_iteration(self.next_event.other_at, self.next_event.other);
    }

    #[inline(always)]
    fn schedule_iteration(&mut self, arrival: Instant, work: Work) {
        let begins_at = match work {
            // A clock of milliseconds does not tell one idle iteration from the next.
            Work::Tick => self.main_loop.free_from(arrival),
            Work::Frame | Work::Control | Work::Stack | Work::Console => {
                self.main_loop.iteration_for(arrival)
            }
        };
        self.next_event.begins_at = begins_at;
        self.next_event.work = work;
    }

    /// Returns when the frame that is next for the CPU arrives or has arrived in the ring. An empty ring has room for
    /// any frame, so it is the first one on the link then.
    #[inline]
    fn next_frame_at(&self) -> Option<Instant> {
        self.ring.next_at().or(self.ingress.next_at())
    }

    /// Returns when the session has something to do although nothing comes. The board's own IP stack waits until its
    /// timers run.
    #[inline]
    fn stack_due_at(&self) -> Option<Instant> {
        let at = self.agent.stack_due_at()?;
        Some(if self.agent.is_on_network() {
            self.main_loop.timers_after(at)
        } else {
            at
        })
    }

    /// Runs one iteration of the main loop.
    #[inline]
    fn run_iteration(&mut self, begins_at: Instant, work: Work) {
        self.fill_ring(begins_at);
        if work != Work::Frame {
            self.agent.invalidate_flow_cache(&mut self.out);
        }
        let before = if self.is_tracing {
            Some(self.out.counters)
        } else {
            None
        };
        let mut busy = match work {
            Work::Frame => self.process_frame(begins_at),
            Work::Control => self.process_control(begins_at),
            Work::Stack => self
                .agent
                .run_stack(&mut LoopIteration::new(begins_at, &mut self.out)),
            Work::Tick => {
                self.main_loop.run_timers(begins_at);
                self.tick_at = begins_at + TICK;
                let busy = self
                    .agent
                    .tick(&mut LoopIteration::new(begins_at, &mut self.out));
                if busy > Duration::ZERO {
                    // The tick's work follows that of the timers, if they are due at the same time.
                    let begin = self.main_loop.free_from(begins_at);
                    self.main_loop.charge(begin, busy);
                }
                return;
            }
            Work::Console => match self
                .console
                .serve(begins_at, &mut self.agent, &mut self.out)
            {
                ConsoleOutcome::Done(busy) => {
                    self.agent.set_controller(self.controller());
                    busy
                }
                ConsoleOutcome::Restart(busy) => return self.restart(begins_at + busy),
            },
        };
        if let Some((before, what)) = before.zip(work.traced()) {
            let (agent, out) = (&mut self.agent, &mut self.out);
            busy = busy
                + self
                    .console
                    .trace(begins_at + busy, what, &before, agent, out);
        }
        self.main_loop.charge(begins_at, busy);
    }

    /// Moves the frames that have arrived by `now` into the ring. The MAC answers a lost frame with a pause frame.
    #[inline]
    fn fill_ring(&mut self, now: Instant) {
        while let Some(frame) = self.ingress.arrived(now) {
            if let Err(frame) = self.ring.push(frame) {
                self.out.counters.dropped_buffer += 1;
                if self.flow_control.wants_pause(frame.at) {
                    self.out.counters.pauses_sent += 1;
                    let from = self.out.egress.send_pause_frame(frame.at);
                    let until = self
                        .ingress
                        .pause(from, self.flow_control.pause_quanta.into());
                    self.flow_control.paused(until);
                }
                self.out.pool.recycle(frame.data);
            }
        }
    }

    #[inline]
    fn process_frame(&mut self, begins_at: Instant) -> Duration {
        let Some(frame) = self.ring.take() else {
            return Duration::ZERO;
        };
        if self.flow_control.drained(self.ring.used()) {
            let at = self.out.egress.send_pause_frame(begins_at);
            self.ingress.resume(at);
        }
        // Whether the frame will find room when it comes back depends on frames that have yet to come. While the ring has
        // plenty of room they cannot make the MAC ask for a pause, so the frame's departure need not wait for them.
        self.out.room_is_uncertain = self.flow_control.is_paused() || self.ring.is_half_full();
        let native = self.is_native(frame.port);
        let mut iteration = LoopIteration::new(begins_at, &mut self.out);
        if native {
            self.agent.invalidate_flow_cache(iteration.out);
            self.agent.native_frame(frame, &mut iteration)
        } else {
            let busy = self.agent.frame(frame, &mut iteration);
            self.next_event.other_unchanged = iteration.only_forwarded;
            busy
        }
    }

    fn process_control(&mut self, begins_at: Instant) -> Duration {
        match self.controls.pop_front() {
            Some((_, FromController::Connected)) => {
                return self
                    .agent
                    .connected(&mut LoopIteration::new(begins_at, &mut self.out))
            }
            Some((_, FromController::Disconnected)) => self.agent.disconnected(),
            Some((_, FromController::Finished)) => self.agent.finished(),
            Some((_, FromController::Reset)) => self.agent.reset(),
            Some((_, FromController::Segment { arrived, payload })) => {
                let mut iteration = LoopIteration::new(begins_at, &mut self.out);
                return self
                    .agent
                    .session_segment(arrived, &payload, &mut iteration);
            }
            None => {}
        }
        Duration::ZERO
    }
}
