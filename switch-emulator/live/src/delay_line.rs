//! Departure scheduler (delay line): frames of a software switch leave when a modelled device would send them.
//!
//! The switch, such as Open vSwitch, forwards at once; the delay line stands at all of its ports. A frame from the
//! network goes on to the switch, and its departure is computed from its arrival ([`delay_model`]). When the switch
//! emits it, it waits for that instant. If the instant is over, it leaves at once: it is *late*. An unknown frame, made
//! by the switch or its controller, leaves at once, too.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{mpsc, Arc};
use std::thread::{self, JoinHandle};

use zodiac_firmware::{Counters, Duration, Instant, PortNumber};

use crate::checksum;
use crate::clock::Clock;
use crate::journal::Journal;
use crate::readiness::Readiness;
use crate::real_time::{DataThreadTiming, RealTime, LEAST_REST};
use crate::receive_port::ReceivePort;
use crate::send_lead::SendLead;
use crate::supervisor::{Reports, Signals};
use crate::telemetry::{Shared, Telemetry, TelemetryMessage};
use live_host::ancillary::Checksum;
use live_host::error::{RunError, StartError};
use live_host::packet_socket::{is_link_down, PacketSocket};
use live_host::realtime::{check_cpu, prepare_thread, Scheduling, UnlimitedRuntime};

mod config;
mod delay_model;
mod in_flight;

pub use config::{DelayLineConfig, DelayModelConfig, DelayedPortConfig, DelayedSwitchConfig};
use delay_model::DelayModel;
use in_flight::InFlight;

/// Frames read from one interface in a row.
const READS_PER_PASS: usize = 64;

/// A port of a switch.
#[derive(Debug)]
struct SwitchPort {
    switch: usize,
    number: PortNumber,
    outside: PacketSocket,
    inside: PacketSocket,
    receive: ReceivePort,
    /// When its link can begin another frame.
    free_at: Instant,
    is_reported: bool,
}

#[derive(Debug)]
struct DelayedSwitch {
    device: DelayModel,
    in_flight: InFlight,
    counters: Counters,
}

/// A frame that arrived in this iteration, from any port.
#[derive(Debug)]
struct ArrivedFrame {
    at: Instant,
    port: usize,
    data: Vec<u8>,
}

/// Thread that delays frames.
#[derive(Debug)]
struct DelayLine {
    /// With frames and their ports.
    time: RealTime<(usize, Vec<u8>)>,
    switches: Vec<DelayedSwitch>,
    ports: Vec<SwitchPort>,
    /// Of all sockets: those outside first, then those inside, in order of `ports`.
    readiness: Readiness,
    ready: Vec<usize>,
    arrived: Vec<ArrivedFrame>,
}

/// Delays frames until a signal ends it.
///
/// # Errors
/// `Start` for whatever keeps it from running, `Ended` if it stops by itself.
pub fn run(path: &Path) -> Result<(), RunError> {
    let config = DelayLineConfig::load(path)?;
    let process = &config.process;
    let signals = Signals::install()
        .map_err(|error| StartError::new(format!("cannot watch signals: {error}")))?;
    if let Some(cpu) = process.cpu {
        check_cpu(cpu)?;
    }
    let clock = Clock::start();
    let (switches, ports) = open(&config)?;
    let mut losses = Vec::new();
    for port in &ports {
        for socket in [&port.outside, &port.inside] {
            losses.push(socket.losses().map_err(StartError::new)?);
        }
    }
    let shared = Arc::new(Shared::default());
    let (telemetry, messages) = Telemetry::channel(Arc::clone(&shared));
    let (_, lines) = mpsc::channel();
    let names = config.switches.iter().map(|one| one.name.clone()).collect();
    let mut journal = Journal::open(
        process,
        (names, Vec::new()),
        clock,
        Arc::clone(&shared),
        messages,
        lines,
        losses,
    )?;
    let real_time = process.scheduling != Scheduling::Other;
    let _unlimited = real_time.then(UnlimitedRuntime::obtain);
    let readiness = watch_ports(&ports)?;
    let (cpu, scheduling, required) =
        (process.cpu, process.scheduling, process.scheduling_required);
    let lead = process.send_lead_ns.map(Duration::from_nanos);
    let threshold = Duration::from_micros(process.stall_threshold_us);
    let offset = process.trace_sequence_offset;
    let trace_offset = process.trace.is_some().then_some(offset);
    let (told, prepared) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("holder".into())
        .spawn(move || {
            let (obtained, warning) = match prepare_thread(cpu, scheduling, required) {
                Ok(obtained) => obtained,
                Err(error) => return drop(told.send(Err(error))),
            };
            let timing = DataThreadTiming {
                stall_threshold: threshold,
                send_lead: lead.map_or_else(|| SendLead::measured(clock), SendLead::fixed),
                longest_rest: LEAST_REST,
                trace_offset,
            };
            let mut delay_line = DelayLine {
                time: RealTime::new(clock, timing, true, telemetry),
                switches,
                ports,
                readiness,
                ready: Vec::new(),
                arrived: Vec::new(),
            };
            if let Some(text) = warning {
                delay_line.time.note(None, text);
            }
            // The starter waits for this and cannot be gone.
            let _ = told.send(Ok(()));
            delay_line.run(obtained);
        })
        .map_err(|error| StartError::new(format!("cannot start the holder's thread: {error}")))?;
    prepared.recv().map_err(|_| {
        StartError::new("the holder's thread ended before it began; report this as a bug")
    })??;
    keep_journal(&mut journal, &signals, &shared, &thread);
    shared.stop.store(true, Relaxed);
    let ended = thread.join();
    journal.collect();
    journal.close();
    ended.map_err(|_| RunError::Ended("the holder's thread failed; report this as a bug".into()))
}

/// Returns the sockets of all ports: those outside first.
fn watch_ports(ports: &[SwitchPort]) -> Result<Readiness, StartError> {
    let failed = |error| StartError::new(format!("cannot watch the interfaces: {error}"));
    let readiness = Readiness::new().map_err(failed)?;
    let sockets = ports.iter().map(|port| &port.outside);
    let sockets = sockets.chain(ports.iter().map(|port| &port.inside));
    for (number, socket) in sockets.enumerate() {
        readiness.watch(socket, number).map_err(failed)?;
    }
    Ok(readiness)
}

/// Keeps the journal until a signal comes or the thread ends.
fn keep_journal(
    journal: &mut Journal,
    signals: &Signals,
    shared: &Shared,
    thread: &JoinHandle<()>,
) {
    let mut reports = Reports::default();
    while !signals.stop.load(Relaxed) && !thread.is_finished() {
        journal.collect();
        thread::sleep(reports.poll(signals, shared, journal));
    }
}

fn open(config: &DelayLineConfig) -> Result<(Vec<DelayedSwitch>, Vec<SwitchPort>), StartError> {
    let (mut switches, mut ports) = (Vec::new(), Vec::new());
    for (place, switch) in config.switches.iter().enumerate() {
        let device = DelayModel::new(switch.device);
        let owner = format!("switch {}", switch.name);
        for (&number, port) in &switch.ports {
            ports.push(SwitchPort {
                switch: place,
                number,
                outside: PacketSocket::open(&port.outside, &owner)?,
                inside: PacketSocket::open(&port.inside, &owner)?,
                receive: ReceivePort::new(device.link()),
                free_at: Instant::ZERO,
                is_reported: false,
            });
        }
        switches.push(DelayedSwitch {
            device,
            in_flight: InFlight::default(),
            counters: Counters::default(),
        });
    }
    Ok((switches, ports))
}

impl DelayLine {
    fn run(mut self, scheduling: String) {
        self.time.report_running(scheduling);
        let mut pass_began = self.time.now();
        while !self.time.is_stopped() {
            self.pass(pass_began);
            let (now, counters_wanted) = self.time.passed(pass_began);
            if counters_wanted {
                self.send_counters();
            }
            pass_began = self.time.rest(now);
        }
        self.send_counters();
    }

    /// Does all work due at `now`.
    fn pass(&mut self, now: Instant) {
        if self.time.compare_clocks(now) {
            for switch in &mut self.switches {
                switch.in_flight.expire(now);
            }
        }
        let mut ready = core::mem::take(&mut self.ready);
        let mut emptied = self.readiness.poll(&mut ready);
        // From the network first: what the switch gives back has come from there.
        ready.sort_unstable();
        let count = self.ports.len();
        for &socket in ready.iter().filter(|socket| **socket < count) {
            emptied &= self.read(socket, true);
        }
        self.forward_to_switches();
        for &socket in ready.iter().filter(|socket| **socket >= count) {
            emptied &= self.read(socket - count, false);
        }
        self.ready = ready;
        if emptied {
            self.time.emptied(now);
        }
        self.depart();
        self.time.caught_up(now);
    }

    /// Reads an interface, and returns whether nothing is left there.
    fn read(&mut self, port: usize, is_outside: bool) -> bool {
        for _ in 0..READS_PER_PASS {
            self.send_due_frames();
            let socket = if is_outside {
                &self.ports[port].outside
            } else {
                &self.ports[port].inside
            };
            match socket.receive(&mut self.time.buffer) {
                Ok(None) => return true,
                Ok(Some(mut received)) => {
                    if received.interface_bytes > received.data.len() {
                        self.report_error(
                            port,
                            "delivered a frame that no link carries: turn offloads off",
                        );
                        continue;
                    }
                    if received.checksum == Checksum::Partial {
                        // A frame that cannot be completed passes as it came.
                        let _ = checksum::complete(&mut received.data);
                    }
                    if is_outside {
                        self.arrive(port, received.stamp_realtime_ns, received.data);
                    } else {
                        self.match_departure(port, received.data);
                    }
                }
                Err(error) => {
                    if !is_link_down(&error) {
                        self.report_error(port, &format!("cannot be read: {error}"));
                    }
                    return true;
                }
            }
        }
        false
    }

    /// A frame has come from the network.
    fn arrive(&mut self, place: usize, stamp_realtime_ns: u64, data: Vec<u8>) {
        let stamp = self.time.arrived(stamp_realtime_ns);
        let port = &mut self.ports[place];
        self.switches[port.switch].counters.received += 1;
        match port.receive.arrival(stamp, data.len()) {
            Ok(at) => self.arrived.push(ArrivedFrame {
                at,
                port: place,
                data,
            }),
            Err(_) => self.report_error(place, "gets more than its link carries: frames are lost"),
        }
    }

    /// Hands arrived frames to the switches, in order of arrival.
    fn forward_to_switches(&mut self) {
        let mut arrived = core::mem::take(&mut self.arrived);
        arrived.sort_by_key(|one| Reverse(one.at));
        while let Some(ArrivedFrame { at, port, data }) = arrived.pop() {
            self.send_due_frames();
            let place = port;
            let port = &self.ports[place];
            let switch = &mut self.switches[port.switch];
            let Ok(leaves_at) = switch.device.leaves_at(at, data.len()) else {
                switch.counters.dropped_buffer += 1;
                continue;
            };
            switch.counters.processed += 1;
            match port.inside.send(&data) {
                Ok(()) => switch.in_flight.add(data, leaves_at),
                Err(error) if is_link_down(&error) => {}
                Err(error) => {
                    let text = format!("the switch's side refuses a frame: {error}: it is lost");
                    self.report_error(place, &text);
                }
            }
        }
        self.arrived = arrived;
    }

    /// Schedules a frame that the switch emits by this port.
    fn match_departure(&mut self, place: usize, data: Vec<u8>) {
        let now = self.time.now();
        let port = &mut self.ports[place];
        let switch = &mut self.switches[port.switch];
        let leaves_at = match switch.in_flight.leaves_at(port.number.get(), &data) {
            Some(at) => {
                let at = at.max(port.free_at);
                port.free_at = at + switch.device.slot(data.len());
                at
            }
            None => now,
        };
        self.time.outgoing.add(leaves_at, (place, data));
    }

    /// Sends all frames that are due, spinning for those due at once.
    fn depart(&mut self) {
        while let Some((at, (place, data))) = self.time.pop_due() {
            self.send(place, at, &data);
        }
    }

    fn send(&mut self, place: usize, at: Instant, data: &[u8]) {
        let port = &self.ports[place];
        match self.time.send(&port.outside, false, at, data) {
            Ok(left) => {
                self.switches[port.switch].counters.forwarded += 1;
                self.time
                    .account((port.switch, port.number), at, left, data);
            }
            Err(error) if is_link_down(&error) => {}
            Err(error) => {
                self.report_error(place, &format!("refuses a frame: {error}: it is lost"));
            }
        }
    }

    /// Sends due frames between pieces of work, so that long work does not delay known departures.
    fn send_due_frames(&mut self) {
        if self.time.is_due() {
            self.depart();
        }
    }

    fn report_error(&mut self, place: usize, text: &str) {
        let port = &mut self.ports[place];
        if !core::mem::replace(&mut port.is_reported, true) {
            let text = format!(
                "port {}: interface {} {text}",
                port.number,
                port.outside.interface()
            );
            let switch = port.switch;
            self.time.note(Some(switch), text);
        }
    }

    fn send_counters(&mut self) {
        for (board, switch) in self.switches.iter().enumerate() {
            let counters = switch.counters;
            self.time.telemetry.send(TelemetryMessage::Counters {
                board,
                counters,
                flow_statistics: Vec::new(),
            });
        }
    }
}
