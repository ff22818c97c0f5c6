//! A destination beside the source, which notes when each frame came.

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration as Span;

use live_host::error::StartError;
use live_host::stall::StallWatch;
use rustix::process::setpriority_process;
use rustix::thread::{sched_setaffinity, CpuSet};
use socket2::{Domain, Socket, Type};
use zodiac_firmware::Duration;

use crate::clock::now;
use crate::config::{FramePath, SlotsConfig};
use crate::frame::{FLOW_AT, HEADERS_BYTES, PORTS_AT, SEQUENCE_AT};
use crate::namespace::in_namespace;
use crate::packet_ring::PacketRing;
use crate::rows::{Spans, NEVER};

/// Receive timeout of the destination.
const RX_TIMEOUT: Span = Span::from_millis(50);
/// Highest priority of an ordinary thread.
const HIGHEST_NICE: i32 = -20;

/// Receiver of all flows' frames.
#[derive(Debug)]
pub(crate) struct SlotReceiver {
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
    pub(crate) fn open_in_namespace(
        config: &SlotsConfig,
        frames: &[Vec<u8>],
    ) -> Result<Self, StartError> {
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
            threshold: config.stall_threshold(),
            cpu: config.cpu,
        })
    }

    pub(crate) fn start(mut self, finished: Arc<AtomicBool>) -> JoinHandle<(Vec<u64>, Spans)> {
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
