//! A source that sends by time slots, the paths that its frames take to the network, and a destination beside it.
//!
//! Slots begin at whole multiples of the period on the wall clock (`CLOCK_REALTIME`), so hosts whose clocks are synchronised
//! agree on them; or periods are counted from a given instant at which the run begins. The thread sleeps until shortly
//! before a slot, then looks at the clock until it begins. For each frame it notes when the slot began, when it handed the
//! frame over, when the kernel had taken it, and when the destination had it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration as Span;

use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::setpriority_process;
use rustix::thread::{
    clock_nanosleep_absolute, move_into_link_name_space, sched_setaffinity, CpuSet,
    LinkNameSpaceType,
};
use rustix::time::{clock_gettime, clock_gettime_dynamic, ClockId, DynamicClockId, Timespec};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use socket2::{Domain, SockAddr, Socket, Type};
use zodiac_firmware::{Duration, Instant};

use crate::config::Scheduling;
use crate::error::{RunError, StartError};
use crate::histogram::{self, Histogram};
use crate::packet_ring::PacketRing;
use crate::packet_socket::set_option;
use crate::realtime::{check_cpu, prepare_thread, UnlimitedRuntime};
use crate::stall::StallWatch;

const NS_PER_S: u64 = 1_000_000_000;
/// Ethernet, IPv4 without options, UDP.
const HEADERS_BYTES: usize = 42;
/// Where a frame carries the addresses and ports that a UDP socket needs.
const ADDRESSES_AT: usize = 26;
const PORTS_AT: usize = 34;
/// Where in the UDP payload mgen writes flow, from 1, and sequence number; so frames of both look alike.
const FLOW_AT: usize = 4;
const SEQUENCE_AT: usize = 8;
const PAYLOAD_BYTES: usize = 12;
/// From the start until the first slot: destination and interfaces are ready.
const LEAD_NS: u64 = 200_000_000;
/// From the last slot until the destination ends.
const DRAIN: Span = Span::from_millis(200);
/// Receive timeout of the destination.
const RX_TIMEOUT: Span = Span::from_millis(50);
/// Highest priority of an ordinary thread.
const HIGHEST_NICE: i32 = -20;
/// A system call, or a wake-up, that takes longer than this is a stall.
const MAX_CALL_TIME: Duration = Duration::from_millis(1);
/// Stands for an instant that never came.
const NEVER: u64 = u64::MAX;
/// Maximum number of frames of a run that keeps a row of each.
const MAX_FRAMES: u64 = 20_000_000;
const MAX_PERIOD_NS: u64 = 1_000 * NS_PER_S;
/// Longest sleep before the source checks for its end.
const SLEEP_SLICE_NS: u64 = NS_PER_S / 10;

/// Configuration of a run (TOML).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsConfig {
    /// How frames get to the network, and from it.
    pub path: FramePath,
    /// Default period of a flow.
    pub period_ns: u64,
    /// How many such periods a run has; without them it goes on until SIGTERM or SIGINT.
    pub periods: Option<u64>,
    /// When the run begins, in nanoseconds since 1970; periods are counted from then. If absent, the run begins soon, and
    /// periods are counted from 1970.
    pub start_ns: Option<u64>,
    /// So long before a slot the sender wakes up and looks at the clock; 0: the timer alone decides.
    pub watch_ns: u64,
    /// Core of the source; without it the kernel chooses.
    pub cpu: Option<usize>,
    /// How the source is scheduled.
    pub scheduling: Scheduling,
    /// A longer gap between two looks at the clock is a stall.
    pub stall_threshold_us: u64,
    /// Where the rows are written, if anywhere: see [`Row`].
    pub rows: Option<PathBuf>,
    /// Network namespace of the destinations, as a file; without it the source's own.
    pub destination_namespace: Option<PathBuf>,
    /// Flows to send.
    #[serde(rename = "flow", default)]
    pub flows: Vec<FlowConfig>,
}

/// How frames get to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FramePath {
    /// UDP sockets of the kernel; the destination waits for what comes.
    Sockets,
    /// UDP sockets with a transmission time for each frame (`SO_TXTIME`, `CLOCK_TAI`): the interface's queue ETF holds
    /// the frame until then. The program hands it over when it wakes up.
    TimedSockets,
    /// Rings of packet sockets; the destination looks all the time.
    PacketRing,
}

/// One flow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Interface by which it leaves.
    pub source: String,
    /// Network namespace of that interface, as a file; without it the program's own.
    pub namespace: Option<PathBuf>,
    /// Interface by which it arrives, if that is on this machine, too: then for all flows.
    pub destination: Option<String>,
    /// When its slot begins, after each whole period of its own.
    pub offset_ns: u64,
    /// From one of its frames to the next, if not as the others'.
    pub period_ns: Option<u64>,
    /// Flow number in its frames, from 0; by default its index in this list.
    pub number: Option<u32>,
    /// The frame without FCS, in hexadecimal digits: Ethernet, IPv4, UDP.
    pub frame: String,
}

/// Timestamps of a frame in nanoseconds since 1970. Written as little-endian 64-bit words, this order, -1 for never.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Its slot begins.
    due: u64,
    /// The source handed it over.
    begun: u64,
    /// The kernel had taken it.
    done: u64,
    /// The destination had it.
    received: u64,
}

/// Beginnings since 1970, and durations.
type Spans = Vec<(u64, u64)>;

/// Summary of a run (JSON on standard output).
#[derive(Debug, Serialize)]
pub struct RunSummary {
    /// How the source was scheduled, as far as the kernel permitted.
    pub scheduling: String,
    /// Why that is less than what was asked for, if it is.
    pub warning: Option<String>,
    /// How long after the beginnings of their slots frames were handed over, and how many were.
    pub late_ns: histogram::Quantiles,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Beginning since 1970, and duration: the source was kept from running.
    pub stalls: Spans,
    /// Stalls of a destination that polls.
    pub destination_stalls: Spans,
}

impl SlotsConfig {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// One line: what is wrong, where, and how to mend it.
    pub fn load(path: &Path) -> Result<Self, StartError> {
        let wrong =
            |what: String| StartError::new(format!("configuration {}: {what}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let config: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        config.check().map_err(wrong)?;
        Ok(config)
    }

    fn receives(&self) -> bool {
        self.flows.iter().any(|flow| flow.destination.is_some())
    }

    fn period_of(&self, flow: &FlowConfig) -> u64 {
        flow.period_ns.unwrap_or(self.period_ns)
    }

    /// Rows of a run: as many for each flow as the quickest one needs.
    fn frames(&self, periods: u64) -> u64 {
        let quickest = self.flows.iter().map(|flow| self.period_of(flow)).min();
        let duration_ns = periods.saturating_mul(self.period_ns);
        let of_one = duration_ns.div_ceil(quickest.unwrap_or(self.period_ns));
        of_one.saturating_mul(self.flows.len() as u64)
    }

    /// Returns how many rows are kept: those of all frames of a run, or none.
    fn rows_kept(&self) -> usize {
        let periods = self
            .periods
            .filter(|_| self.rows.is_some() || self.receives());
        periods.map_or(0, |periods| self.frames(periods) as usize)
    }

    fn check(&self) -> Result<(), String> {
        let periods = self.flows.iter().filter_map(|flow| flow.period_ns);
        for period_ns in periods.chain([self.period_ns]) {
            if !(1_000..=MAX_PERIOD_NS).contains(&period_ns) {
                return Err(format!(
                    "period_ns: choose 1000 to {MAX_PERIOD_NS}, not {period_ns}"
                ));
            }
        }
        if self.flows.is_empty() {
            return Err("flow: nothing is sent; add a [[flow]]".into());
        }
        match self.periods {
            Some(periods) if periods == 0 || self.frames(periods) > MAX_FRAMES => {
                return Err(format!("periods: choose 1 to {MAX_FRAMES} frames in all"));
            }
            None if self.rows.is_some() || self.receives() => {
                return Err("periods: say how many there are: each frame gets a row".into());
            }
            _ => {}
        }
        if let Some(cpu) = self.cpu {
            check_cpu(cpu).map_err(|error| error.to_string())?;
        }
        for flow in &self.flows {
            let who = &flow.source;
            if flow.offset_ns >= self.period_of(flow) {
                return Err(format!(
                    "flow from {who}: offset_ns: choose less than period_ns"
                ));
            }
            if self.receives() && flow.number.is_some() {
                return Err(format!(
                    "flow from {who}: number: is its place where frames are received; leave it out"
                ));
            }
            let frame = bytes_of(&flow.frame).ok_or_else(|| {
                format!("flow from {who}: frame: give two hexadecimal digits for each byte")
            })?;
            if frame.len() < HEADERS_BYTES + PAYLOAD_BYTES || frame[12..14] != [8, 0] {
                return Err(format!(
                    "flow from {who}: frame: give Ethernet, IPv4, UDP and at least {PAYLOAD_BYTES} bytes"
                ));
            }
            if flow.destination.is_some() != self.receives() {
                return Err(format!(
                    "flow from {who}: destination: give all flows one, or none"
                ));
            }
            let port = &frame[PORTS_AT + 2..PORTS_AT + 4];
            let first = bytes_of(&self.flows[0].frame).unwrap_or_default();
            if self.receives()
                && self.path != FramePath::PacketRing
                && first.get(PORTS_AT + 2..PORTS_AT + 4) != Some(port)
            {
                return Err(format!(
                    "flow from {who}: frame: one socket receives for all flows: give all one UDP destination port"
                ));
            }
        }
        Ok(())
    }
}

/// Sends and receives, and writes the rows. Returns a summary.
///
/// # Errors
/// Interfaces or memory cannot be had, or a thread failed.
pub fn run(config: &SlotsConfig) -> Result<RunSummary, RunError> {
    let _unlimited = UnlimitedRuntime::obtain();
    let frames: Vec<Vec<u8>> = config
        .flows
        .iter()
        .enumerate()
        .filter_map(|(place, flow)| {
            let mut frame = bytes_of(&flow.frame)?;
            let number = flow.number.unwrap_or(place as u32) + 1;
            frame[HEADERS_BYTES..][FLOW_AT..FLOW_AT + 4].copy_from_slice(&number.to_be_bytes());
            Some(frame)
        })
        .collect();
    let tx_paths = config
        .flows
        .iter()
        .zip(&frames)
        .map(|(flow, frame)| TxPath::open(config.path, flow, frame))
        .collect::<Result<Vec<_>, _>>()?;
    let finished = Arc::new(AtomicBool::new(false));
    let ended = ended_by_signal()
        .map_err(|error| StartError::new(format!("cannot watch signals: {error}")))?;
    let destination = config
        .receives()
        .then(|| SlotReceiver::open_in_namespace(config, &frames))
        .transpose()?
        .map(|destination| destination.start(Arc::clone(&finished)));
    let source = SlotSender {
        tx_paths,
        frames,
        watch: StallWatch::new(threshold(config), now()),
        refused: 0,
        stalls: Vec::new(),
        late_ns: Histogram::new(),
        ended,
        hands_over_early: config.path == FramePath::TimedSockets,
    };
    let (cpu, scheduling) = (config.cpu, config.scheduling);
    let schedule = SlotSchedule::new(config, now().as_nanos())?;
    let watch_ns = config.watch_ns;
    let rows_kept = config.rows_kept();
    let sending = thread::spawn(move || -> Result<_, StartError> {
        let obtained = prepare_thread(cpu, scheduling, false)?;
        let mut source = source;
        let rows = source.send(schedule, watch_ns, rows_kept);
        Ok((obtained, rows, source))
    });
    let sent = sending.join();
    thread::sleep(DRAIN);
    finished.store(true, Ordering::Release);
    let failed = |_| RunError::Ended("a thread failed; report this as a bug".into());
    let (received, destination_stalls) = destination
        .map(|destination| destination.join().map_err(failed))
        .transpose()?
        .unwrap_or_default();
    let ((scheduling, warning), mut rows, source) = sent.map_err(failed)??;
    for (row, received) in rows.iter_mut().zip(received) {
        row.received = received;
    }
    if let Some(file) = &config.rows {
        write(file, &rows).map_err(|error| {
            RunError::Ended(format!("cannot write {}: {error}", file.display()))
        })?;
    }
    Ok(RunSummary {
        scheduling,
        warning,
        late_ns: source.late_ns.quantiles(),
        refused: source.refused,
        stalls: source.stalls,
        destination_stalls,
    })
}

/// Is set when the program shall end; a second signal ends it at once.
fn ended_by_signal() -> io::Result<Arc<AtomicBool>> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&ended))?;
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    Ok(ended)
}

/// Slots of all flows, in order of time.
#[derive(Debug)]
struct SlotSchedule {
    /// For each flow: when its next slot begins, its index, and the sequence number.
    next: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// By flow.
    periods_ns: Vec<u64>,
    /// Slots that begin then, or later, are not sent.
    end_ns: u64,
}

impl SlotSchedule {
    fn new(config: &SlotsConfig, now_ns: u64) -> Result<Self, StartError> {
        let begin_ns = match config.start_ns {
            Some(start_ns) if start_ns <= now_ns => {
                return Err(StartError::new(format!(
                    "start_ns: was {} us ago; give an instant that is to come",
                    (now_ns - start_ns) / 1_000
                )));
            }
            Some(start_ns) => start_ns,
            None => (now_ns + LEAD_NS).next_multiple_of(config.period_ns),
        };
        let zero_ns = config.start_ns.unwrap_or(0);
        let first = |(place, flow): (usize, &FlowConfig)| {
            let period_ns = config.period_of(flow);
            let since_ns = begin_ns - zero_ns;
            // The flow's first slot is the first one that does not begin before the run.
            let periods = since_ns.saturating_sub(flow.offset_ns).div_ceil(period_ns);
            Reverse((zero_ns + flow.offset_ns + periods * period_ns, place, 0))
        };
        let end_ns = config.periods.map_or(u64::MAX, |periods| {
            begin_ns.saturating_add(periods.saturating_mul(config.period_ns))
        });
        Ok(Self {
            next: config.flows.iter().enumerate().map(first).collect(),
            periods_ns: config
                .flows
                .iter()
                .map(|flow| config.period_of(flow))
                .collect(),
            end_ns,
        })
    }
}

impl Iterator for SlotSchedule {
    /// The flow's place, its sequence number, and when the slot begins.
    type Item = (usize, u32, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((due, flow, sequence)) = self.next.pop()?;
        if due >= self.end_ns {
            return None;
        }
        let then = due + self.periods_ns[flow];
        self.next
            .push(Reverse((then, flow, sequence.wrapping_add(1))));
        Some((flow, sequence, due))
    }
}

/// Transmit path of a flow.
#[derive(Debug)]
enum TxPath {
    Socket(Socket),
    Timed(Socket),
    Ring(PacketRing),
}

impl TxPath {
    /// Opens it in the flow's network namespace.
    fn open(path: FramePath, flow: &FlowConfig, frame: &[u8]) -> Result<Self, StartError> {
        in_namespace(flow.namespace.as_deref(), || {
            Self::open_in_current_namespace(path, flow, frame)
        })
    }

    fn open_in_current_namespace(
        path: FramePath,
        flow: &FlowConfig,
        frame: &[u8],
    ) -> Result<Self, StartError> {
        if path == FramePath::PacketRing {
            return PacketRing::sending(&flow.source).map(Self::Ring);
        }
        let local = socket_address(frame, ADDRESSES_AT, PORTS_AT);
        let remote = socket_address(frame, ADDRESSES_AT + 4, PORTS_AT + 2);
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.bind_device(Some(flow.source.as_bytes()))?;
            socket.bind(&local)?;
            socket.connect(&remote)?;
            if path == FramePath::TimedSockets {
                // struct sock_txtime: the clock, and no flags.
                set_option(
                    &socket,
                    libc::SOL_SOCKET,
                    libc::SO_TXTIME,
                    &[libc::CLOCK_TAI, 0],
                )?;
            }
            Ok(socket)
        };
        let way = match path {
            FramePath::TimedSockets => Self::Timed,
            _ => Self::Socket,
        };
        open().map(way).map_err(|error| {
            StartError::new(format!(
                "interface {}: no UDP socket: {error}; give the interface the frame's address first",
                flow.source
            ))
        })
    }

    fn send(&mut self, frame: &[u8], due: u64) -> io::Result<()> {
        match self {
            Self::Timed(socket) => {
                let ahead_ns = leap_ns(tai_ns(), now().as_nanos());
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(TxTime(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                control.push(SendAncillaryMessage::TxTime(due + ahead_ns));
                let payload = [io::IoSlice::new(&frame[HEADERS_BYTES..])];
                sendmsg(socket, &payload, &mut control, SendFlags::DONTWAIT)?;
                Ok(())
            }
            Self::Socket(socket) => socket.send(&frame[HEADERS_BYTES..]).map(|_| ()),
            Self::Ring(ring) => ring.send(frame),
        }
    }
}

struct SlotSender {
    tx_paths: Vec<TxPath>,
    frames: Vec<Vec<u8>>,
    watch: StallWatch,
    refused: u64,
    stalls: Spans,
    /// From the beginning of a slot until its frame was handed over.
    late_ns: Histogram,
    /// A signal has come.
    ended: Arc<AtomicBool>,
    /// Frames are handed over before their slots begin, as the kernel holds them until then.
    hands_over_early: bool,
}

impl SlotSender {
    /// Sends what is planned, or until a signal comes. Returns `rows_kept` rows, in order of sequence number and flow.
    fn send(&mut self, schedule: SlotSchedule, watch_ns: u64, rows_kept: usize) -> Vec<Row> {
        let never = Row {
            due: NEVER,
            begun: NEVER,
            done: NEVER,
            received: NEVER,
        };
        let mut rows = vec![never; rows_kept];
        for (flow, sequence, due) in schedule {
            self.frames[flow][HEADERS_BYTES..][SEQUENCE_AT..SEQUENCE_AT + 4]
                .copy_from_slice(&sequence.to_be_bytes());
            if !self.wait(due, watch_ns) {
                break;
            }
            let begun = self.read_clock();
            if self.tx_paths[flow].send(&self.frames[flow], due).is_err() {
                self.refused += 1;
            }
            let done = self.read_clock_after_call(MAX_CALL_TIME);
            self.late_ns.record(begun.saturating_sub(due));
            let place = sequence as usize * self.tx_paths.len() + flow;
            if let Some(row) = rows.get_mut(place) {
                *row = Row {
                    due,
                    begun,
                    done,
                    received: NEVER,
                };
            }
        }
        rows
    }

    /// Sleeps until shortly before the slot, then looks at the clock until it begins; false if a signal came before.
    fn wait(&mut self, due: u64, watch_ns: u64) -> bool {
        let awake = due.saturating_sub(watch_ns);
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return false;
            }
            let slice_end = now().as_nanos() + SLEEP_SLICE_NS;
            if slice_end >= awake {
                break;
            }
            sleep_until(slice_end);
        }
        if awake > now().as_nanos() {
            sleep_until(awake);
            self.watch.rested(Instant::from_nanos(awake));
            self.read_clock_after_call(MAX_CALL_TIME);
        }
        while !self.hands_over_early && self.read_clock() < due {
            std::hint::spin_loop();
        }
        true
    }

    /// Returns the time, after a system call or a wake-up. How long that took is itself measured: it is a stall only if
    /// it took longer than `long`.
    fn read_clock_after_call(&mut self, long: Duration) -> u64 {
        let now = now();
        if now.saturating_since(self.watch.last()) <= long {
            self.watch.rested(now);
        }
        self.read_clock()
    }

    fn read_clock(&mut self) -> u64 {
        let now = now();
        if let Some(stall) = self.watch.observe(now) {
            self.stalls
                .push((stall.start.as_nanos(), stall.duration.as_nanos()));
        }
        now.as_nanos()
    }
}

/// Receiver of all flows' frames.
#[derive(Debug)]
struct SlotReceiver {
    endpoints: RxEndpoints,
    flows: usize,
    /// When each frame came, by flow and sequence number as in the rows.
    received: Vec<u64>,
    threshold: Duration,
    cpu: Option<usize>,
}

#[derive(Debug)]
enum RxEndpoints {
    Socket(Socket),
    Rings(Vec<PacketRing>),
}

impl SlotReceiver {
    /// Opens it in its network namespace: sockets stay in the one in which they were made.
    fn open_in_namespace(config: &SlotsConfig, frames: &[Vec<u8>]) -> Result<Self, StartError> {
        in_namespace(config.destination_namespace.as_deref(), || {
            Self::open(config, frames)
        })
    }

    fn open(config: &SlotsConfig, frames: &[Vec<u8>]) -> Result<Self, StartError> {
        let endpoints = match config.path {
            FramePath::PacketRing => RxEndpoints::Rings(
                config
                    .flows
                    .iter()
                    .filter_map(|flow| flow.destination.as_deref())
                    .map(PacketRing::receiving)
                    .collect::<Result<_, _>>()?,
            ),
            FramePath::Sockets | FramePath::TimedSockets => {
                let port = u16::from_be_bytes([frames[0][PORTS_AT + 2], frames[0][PORTS_AT + 3]]);
                let open = || -> io::Result<Socket> {
                    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
                    socket.set_read_timeout(Some(RX_TIMEOUT))?;
                    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
                    Ok(socket)
                };
                RxEndpoints::Socket(open().map_err(|error| {
                    StartError::new(format!("no UDP socket at port {port}: {error}"))
                })?)
            }
        };
        Ok(Self {
            endpoints,
            flows: config.flows.len(),
            received: vec![NEVER; config.rows_kept()],
            threshold: threshold(config),
            cpu: config.cpu,
        })
    }

    fn start(mut self, finished: Arc<AtomicBool>) -> JoinHandle<(Vec<u64>, Spans)> {
        thread::spawn(move || {
            self.avoid_source_core();
            // As the destinations of the report; without permission the stalls tell.
            let _ = setpriority_process(None, HIGHEST_NICE);
            let stalls =
                match std::mem::replace(&mut self.endpoints, RxEndpoints::Rings(Vec::new())) {
                    RxEndpoints::Socket(socket) => self.receive_from(&socket, &finished),
                    RxEndpoints::Rings(rings) => self.poll_rings(rings, &finished),
                };
            (self.received, stalls)
        })
    }

    /// Keeps off the source's core if there is another one.
    fn avoid_source_core(&self) {
        let (Some(taken), Ok(cores)) = (self.cpu, thread::available_parallelism()) else {
            return;
        };
        let mut set = CpuSet::new();
        for core in (0..cores.get()).filter(|core| *core != taken) {
            set.set(core);
        }
        if set.count() > 0 {
            let _ = sched_setaffinity(None, &set); // else both share it, and the stalls tell
        }
    }

    fn receive_from(&mut self, mut socket: &Socket, finished: &AtomicBool) -> Spans {
        let (mut stalls, mut payload) = (Vec::new(), [0; 2048]);
        let run_delay = RunDelay::of_this_thread();
        let mut waited_ns = run_delay.waited_ns();
        while !finished.load(Ordering::Acquire) {
            let Ok(length) = socket.read(&mut payload) else {
                continue;
            };
            let at_ns = now().as_nanos();
            self.record_arrival(&payload[..length], at_ns);
            // The thread was woken, but another program had the core: that time is no part of the frame's path.
            let before_ns = std::mem::replace(&mut waited_ns, run_delay.waited_ns());
            let since_ns = waited_ns.saturating_sub(before_ns);
            if since_ns > self.threshold.as_nanos() {
                stalls.push((at_ns.saturating_sub(since_ns), since_ns));
            }
        }
        stalls
    }

    fn poll_rings(&mut self, mut rings: Vec<PacketRing>, finished: &AtomicBool) -> Spans {
        let (mut stalls, mut frame) = (Vec::new(), Vec::new());
        let mut watch = StallWatch::new(self.threshold, now());
        while !finished.load(Ordering::Acquire) {
            for ring in &mut rings {
                while ring.receive(&mut frame) {
                    let at_ns = now().as_nanos();
                    self.record_arrival(frame.get(HEADERS_BYTES..).unwrap_or_default(), at_ns);
                }
            }
            if let Some(stall) = watch.observe(now()) {
                stalls.push((stall.start.as_nanos(), stall.duration.as_nanos()));
            }
        }
        stalls
    }

    fn record_arrival(&mut self, payload: &[u8], at_ns: u64) {
        let word = |at: usize| {
            let bytes = payload.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
        };
        let (Some(flow), Some(sequence)) = (word(FLOW_AT), word(SEQUENCE_AT)) else {
            return;
        };
        if flow == 0 || flow > self.flows {
            return;
        }
        if let Some(place) = self.received.get_mut(sequence * self.flows + flow - 1) {
            *place = at_ns;
        }
    }
}

/// Run delay: how long this thread was runnable but did not run (`/proc/thread-self/schedstat`).
#[derive(Debug)]
struct RunDelay(Option<fs::File>);

impl RunDelay {
    fn of_this_thread() -> Self {
        Self(fs::File::open("/proc/thread-self/schedstat").ok())
    }

    /// In all; 0 where the kernel does not tell.
    fn waited_ns(&self) -> u64 {
        let mut text = [0; 96];
        let length = self
            .0
            .as_ref()
            .and_then(|file| file.read_at(&mut text, 0).ok());
        std::str::from_utf8(&text[..length.unwrap_or(0)])
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
            .unwrap_or(0)
    }
}

/// Runs `work` in another network namespace, if one is given. Sockets opened there stay there.
fn in_namespace<T: Send>(
    namespace: Option<&Path>,
    work: impl FnOnce() -> Result<T, StartError> + Send,
) -> Result<T, StartError> {
    let Some(namespace) = namespace else {
        return work();
    };
    let enter = || -> io::Result<()> {
        let file = fs::File::open(namespace)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    };
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            enter().map_err(|error| {
                StartError::new(format!("namespace {}: {error}", namespace.display()))
            })?;
            work()
        });
        working
            .join()
            .map_err(|_| StartError::new("a thread failed; report this as a bug"))?
    })
}

fn socket_address(frame: &[u8], address_at: usize, port_at: usize) -> SockAddr {
    let address: [u8; 4] = std::array::from_fn(|place| frame[address_at + place]);
    let port = u16::from_be_bytes([frame[port_at], frame[port_at + 1]]);
    SocketAddrV4::new(address.into(), port).into()
}

fn threshold(config: &SlotsConfig) -> Duration {
    Duration::from_micros(config.stall_threshold_us)
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&digits[place..place + 2], 16).ok())
        .collect()
}

fn now() -> Instant {
    Instant::from_nanos(whole_ns(clock_gettime(ClockId::Realtime)))
}

/// The clock that ETF goes by: the wall clock without leap seconds.
fn tai_ns() -> u64 {
    clock_gettime_dynamic(DynamicClockId::Tai).map_or_else(|_| now().as_nanos(), whole_ns)
}

/// Returns by how much that clock is ahead of the wall clock: whole seconds, 0 where nobody has told the kernel. The
/// clocks are read one after the other, so their difference is not exactly that, and may be less than 0.
fn leap_ns(tai_ns: u64, wall_ns: u64) -> u64 {
    (tai_ns + NS_PER_S / 2).saturating_sub(wall_ns) / NS_PER_S * NS_PER_S
}

fn whole_ns(time: Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
}

fn sleep_until(at_ns: u64) {
    let at = Timespec {
        tv_sec: i64::try_from(at_ns / NS_PER_S).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at_ns % NS_PER_S).unwrap_or_default(),
    };
    while clock_nanosleep_absolute(ClockId::Realtime, &at).is_err() {}
}

fn write(path: &Path, rows: &[Row]) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    for row in rows {
        for word in [row.due, row.begun, row.done, row.received] {
            file.write_all(&word.to_le_bytes())?;
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(path: &str, offsets_ns: &[u64]) -> Result<SlotsConfig, String> {
        let digits = ["00".repeat(12), "0800".into(), "00".repeat(46)].concat();
        let flows: Vec<_> = offsets_ns
            .iter()
            .map(|offset_ns| {
                format!(
                    "[[flow]]\nsource = \"a\"\ndestination = \"b\"\noffset_ns = {offset_ns}\nframe = \"{digits}\"\n"
                )
            })
            .collect();
        let flows = flows.concat();
        let text = format!(
            "path = \"{path}\"\nperiod_ns = 1_000_000\nperiods = 2\nwatch_ns = 0\nscheduling = \"other\"\n\
             stall_threshold_us = 50\nrows = \"/dev/null\"\n{flows}"
        );
        let config: SlotsConfig = toml::from_str(&text).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn slots_begin_at_whole_periods_in_order_of_time() {
        let config = config("packet-ring", &[30_000, 15_000]).unwrap();
        let schedule: Vec<_> = SlotSchedule::new(&config, 7).unwrap().collect();
        let order: Vec<_> = schedule
            .iter()
            .map(|(flow, sequence, _)| (*flow, *sequence))
            .collect();
        assert_eq!(order, [(1, 0), (0, 0), (1, 1), (0, 1)]);
        let within: Vec<_> = schedule.iter().map(|(.., due)| due % 1_000_000).collect();
        assert_eq!(within, [15_000, 30_000, 15_000, 30_000]);
    }

    #[test]
    fn flows_have_periods_of_their_own_and_runs_a_beginning() {
        let mut config = config("packet-ring", &[30_000, 15_000]).unwrap();
        config.flows[1].period_ns = Some(2_000_000);
        config.periods = Some(4);
        let of = |schedule: SlotSchedule| schedule.collect::<Vec<_>>();
        let soon = of(SlotSchedule::new(&config, 3_000_000_000_000_000_007).unwrap());
        let flows: Vec<_> = soon
            .iter()
            .map(|(flow, sequence, _)| (*flow, *sequence))
            .collect();
        // It begins at an odd millisecond, so the slow flow's first slot is in the second.
        assert_eq!(flows, [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)]);
        // Wherever a host begins, slots are whole multiples of the flow's period away from 1970.
        assert!(soon.iter().all(|(flow, _, due)| match flow {
            0 => due % 1_000_000 == 30_000,
            _ => due % 2_000_000 == 15_000,
        }));
        config.start_ns = Some(777);
        let begun: Vec<_> = of(SlotSchedule::new(&config, 776).unwrap());
        assert_eq!(
            begun[..3],
            [(1, 0, 15_777), (0, 0, 30_777), (0, 1, 1_030_777)]
        );
        let error = SlotSchedule::new(&config, 5_777).unwrap_err().to_string();
        assert_eq!(
            error,
            "start_ns: was 5 us ago; give an instant that is to come"
        );
        config.start_ns = None;
        config.periods = None;
        assert_eq!(
            SlotSchedule::new(&config, 7).unwrap().take(1_000).count(),
            1_000,
            "no end"
        );
    }

    #[test]
    fn a_run_without_end_keeps_no_rows_and_ends_by_a_signal() {
        let mut config = config("packet-ring", &[0]).unwrap();
        config.flows[0].destination = None;
        config.periods = None;
        assert!(config
            .check()
            .unwrap_err()
            .contains("each frame gets a row"));
        config.rows = None;
        config.check().unwrap();
        assert_eq!(config.rows_kept(), 0);
        let ended = Arc::new(AtomicBool::new(true));
        let mut source = quiet_source();
        source.ended = Arc::clone(&ended);
        source.frames = vec![vec![0; 60]];
        assert!(source
            .send(SlotSchedule::new(&config, 7).unwrap(), 0, 0)
            .is_empty());
        assert_eq!(source.late_ns.quantiles().count, 0);
    }

    #[test]
    fn another_number_is_only_of_frames_that_are_received_elsewhere() {
        let mut config = config("packet-ring", &[0]).unwrap();
        config.flows[0].number = Some(7);
        assert!(config.check().unwrap_err().contains("number: is its place"));
        config.flows[0].destination = None;
        config.check().unwrap();
    }

    #[test]
    fn atomic_time_is_whole_seconds_ahead_whenever_the_clocks_are_read() {
        let wall_ns = 1_800_000_000 * NS_PER_S;
        for (tai_ns, expected) in [
            (wall_ns - 40, 0),
            (wall_ns + 37 * NS_PER_S - 40, 37 * NS_PER_S),
            (wall_ns + 37 * NS_PER_S, 37 * NS_PER_S),
        ] {
            assert_eq!(leap_ns(tai_ns, wall_ns), expected);
        }
    }

    fn quiet_source() -> SlotSender {
        SlotSender {
            tx_paths: Vec::new(),
            frames: Vec::new(),
            watch: StallWatch::new(Duration::from_micros(50), now()),
            refused: 0,
            stalls: Vec::new(),
            late_ns: Histogram::new(),
            ended: Arc::new(AtomicBool::new(false)),
            hands_over_early: false,
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_in_one_line() {
        for (path, offsets_ns, expected) in [
            (
                "sockets",
                &[1_000_000][..],
                "offset_ns: choose less than period_ns",
            ),
            ("sockets", &[], "add a [[flow]]"),
            ("dpdk", &[0], "unknown variant"),
        ] {
            let error = config(path, offsets_ns).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(config("sockets", &[0]).is_ok());
    }

    #[test]
    fn a_slot_is_never_early_and_what_it_missed_is_a_stall() {
        let mut source = quiet_source();
        let due = now().as_nanos() + 2_000_000;
        assert!(source.wait(due, 1_000_000));
        assert!(now().as_nanos() >= due);
        source.read_clock();
        let before = source.stalls.len();
        thread::sleep(Span::from_millis(2));
        source.read_clock_after_call(Duration::from_millis(60_000));
        assert_eq!(source.stalls.len(), before, "the kernel was at work");
        thread::sleep(Span::from_millis(2));
        source.wait(due, 1_000_000);
        assert_eq!(source.stalls.len(), before + 1);
    }
}
