//! Outputs of the board.

use std::collections::VecDeque;

use crate::buffers::{length_with_fcs, pad, FramePool};
use crate::event::{Counters, Event};
use crate::integrated_switch::Egress;
use crate::port::{HardwareCounters, PortMask, PortNumber, PORTS};
use crate::settings::EepromImage;
use crate::time::Instant;

/// Output of the board, with its instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// When it happens. A frame's instant is its departure and may lie in the future: the driver holds it until
    /// then.
    pub at: Instant,
    /// Kind of the output.
    pub kind: OutputKind,
}

/// Kind of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The first bit of a frame's preamble leaves by these ports.
    Frame {
        /// Ports by which it leaves at this instant.
        ports: PortMask,
        /// The frame without FCS.
        data: Vec<u8>,
    },
    /// One OpenFlow message for the controller.
    Controller(Vec<u8>),
    /// Begin a new TCP connection to the controller; an attempt still pending has been given up.
    Connect,
    /// Close the TCP connection.
    Close,
    /// Text of the console.
    Console(Vec<u8>),
    /// The board leaves the USB bus, as it does when it restarts: terminals lose it.
    Detach,
    /// The board is back on the USB bus.
    Attach,
    /// The configuration was saved: new contents of the EEPROM.
    Eeprom(Box<EepromImage>),
    /// Something went wrong.
    Event(Event),
}

/// A frame that the CPU will hand to its MAC at this instant.
#[derive(Debug)]
struct Returning {
    at: Instant,
    ports: PortMask,
    /// Padded.
    frame: Vec<u8>,
    /// Whether the IP stack sent it.
    is_native: bool,
}

/// Longest frame, without FCS, that the driver of the MAC sends: 1518 bytes with the tail tag.
pub(crate) const MAX_SENT_BYTES: usize = 1_517;

/// Bit of a tail tag: the integrated switch is to find the port by the destination address.
const LOOK_UP: u8 = 0x80;

/// Ethernet, IP and TCP header of a segment from or to the controller.
pub(crate) const CONTROL_HEADER_BYTES: usize = 54;

/// Collects the board's outputs until the driver drains them.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct Outbox {
    queue: VecDeque<Output>,
    /// Frames that the CPU will hand to its MAC, in order, while it is not certain that they will find room in the
    /// integrated switch.
    returning: VecDeque<Returning>,
    pub(crate) egress: Egress,
    /// Whether a frame that the CPU sends may find no room there.
    pub(crate) room_is_uncertain: bool,
    /// Where management traffic leaves.
    native_ports: PortMask,
    /// Events that were given out since power-up.
    pub(crate) events: u64,
    pub(crate) pool: FramePool,
    pub(crate) counters: Counters,
    /// Frames that the CPU sent by each port.
    pub(crate) transmitted: [u64; PORTS],
    /// Counters of the integrated switch since the firmware last read them.
    pub(crate) hardware: [HardwareCounters; PORTS],
}

impl Outbox {
    pub(crate) fn new(egress: Egress, native_ports: PortMask) -> Self {
        Self {
            queue: VecDeque::new(),
            egress,
            returning: VecDeque::new(),
            room_is_uncertain: false,
            native_ports,
            events: 0,
            pool: FramePool::default(),
            counters: Counters::default(),
            transmitted: [0; PORTS],
            hardware: [HardwareCounters::default(); PORTS],
        }
    }

    /// Takes over from before a restart what is outside of the CPU: what was given out already, and what was counted.
    pub(crate) fn take_over(&mut self, before: &mut Self) {
        std::mem::swap(&mut self.queue, &mut before.queue);
        std::mem::swap(&mut self.pool, &mut before.pool);
        self.counters = before.counters;
    }

    #[inline]
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Instant, kind: OutputKind) {
        self.queue.push_back(Output { at, kind });
    }

    pub(crate) fn event(&mut self, at: Instant, event: Event) {
        self.events += 1;
        self.push(at, OutputKind::Event(event));
    }

    pub(crate) fn controller(&mut self, at: Instant, message: Vec<u8>) {
        self.push(at, OutputKind::Controller(message));
    }

    /// The CPU hands the TCP segment with `payload` bytes for the controller to its MAC at `now`. Returns the instant
    /// at which its frame leaves by the native port.
    pub(crate) fn control_frame(&mut self, now: Instant, payload: usize) -> Instant {
        let length = length_with_fcs(CONTROL_HEADER_BYTES + payload);
        let passed = self.egress.hand_over(now, length).unwrap_or(now);
        match self.native_ports.iter().next() {
            Some(port) => self.egress.depart(passed, port, length),
            None => passed,
        }
    }

    /// The CPU hands a frame of its IP stack to its MAC at `now`; the integrated switch finds the native port.
    pub(crate) fn send_native(&mut self, now: Instant, mut frame: Vec<u8>) {
        pad(&mut frame);
        self.send_back(now, self.native_ports, frame, true);
    }

    /// The CPU hands a copy of `frame` to its MAC at `now`.
    pub(crate) fn send_copy(&mut self, now: Instant, ports: PortMask, frame: &[u8]) {
        let copy = self.pool.copy(frame);
        self.send(now, ports, copy);
    }

    /// The CPU hands `frame` to its MAC at `now`, with the tail tag `tag`. With the highest bit set the integrated switch
    /// looks the address up; it has learnt none. The frame counts for the ports of the other bits all the same.
    pub(crate) fn send_tagged(&mut self, now: Instant, tag: u8, frame: Vec<u8>) {
        let ports = PortMask::from_bits(tag);
        if tag & LOOK_UP == 0 {
            return self.send(now, ports, frame);
        }
        self.count_transmitted(ports);
        self.send(now, PortMask::EMPTY, frame);
    }

    #[inline]
    fn count_transmitted(&mut self, ports: PortMask) {
        for port in ports.iter() {
            self.transmitted[usize::from(port.get()) - 1] += 1;
        }
    }

    /// The CPU hands `frame` to its MAC at `now`.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, ports: PortMask, mut frame: Vec<u8>) {
        self.count_transmitted(ports);
        pad(&mut frame);
        if frame.len() > MAX_SENT_BYTES {
            self.counters.dropped_size += 1;
            return self.pool.recycle(frame);
        }
        self.send_back(now, ports, frame, false);
    }

    /// As [`send`](Self::send), for one frame of `length` bytes (with FCS) that the driver holds, while no frame waits
    /// to go back and room is certain; its counters are deferred. Returns its departure, or `None` and changes nothing
    /// if the MAC refuses it.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        now: Instant,
        port: PortNumber,
        length: usize,
    ) -> Option<Instant> {
        let ready = self.egress.hand_over(now, length)?;
        self.room_is_uncertain = false;
        Some(self.egress.depart(ready, port, length))
    }

    /// Returns whether nothing waits, neither for the driver nor to go back to the integrated switch.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.returning.is_empty()
    }

    /// A frame goes back to the integrated switch, from the OpenFlow agent or (`is_native`) from the IP stack.
    #[inline]
    fn send_back(&mut self, now: Instant, ports: PortMask, frame: Vec<u8>, is_native: bool) {
        if self.room_is_uncertain || !self.returning.is_empty() {
            return self.returning.push_back(Returning {
                at: now,
                ports,
                frame,
                is_native,
            });
        }
        if let Some(ready) = self.hand_over(now, length_with_fcs(frame.len())) {
            self.pass_back(ready, ports, frame, is_native);
        } else {
            self.pool.recycle(frame);
        }
    }

    /// Returns when the next frame comes back from the CPU whose fate is open until then.
    #[inline]
    pub(crate) fn returning_at(&self) -> Option<Instant> {
        self.returning.front().map(|returning| returning.at)
    }

    /// That frame comes back to the integrated switch, which has room for it from `room_free_at` on.
    pub(crate) fn return_next(&mut self, room_free_at: Instant) {
        let Some(returning) = self.returning.pop_front() else {
            return;
        };
        let Returning {
            at,
            ports,
            frame,
            is_native,
        } = returning;
        let length = length_with_fcs(frame.len());
        match self.hand_over(at, length) {
            Some(_) if at < room_free_at => {
                self.counters.dropped_return += 1;
                self.pool.recycle(frame);
            }
            Some(ready) => self.pass_back(ready, ports, frame, is_native),
            None => self.pool.recycle(frame),
        }
    }

    /// Hands a frame to the MAC. Returns the instant at which it has passed the integrated switch, if the MAC took it.
    #[inline(always)]
    fn hand_over(&mut self, now: Instant, length: usize) -> Option<Instant> {
        let ready = self.egress.hand_over(now, length);
        self.counters.dropped_transmit += u64::from(ready.is_none());
        ready
    }

    /// A frame has found room in the integrated switch and has passed it at `ready`.
    #[inline]
    fn pass_back(&mut self, ready: Instant, ports: PortMask, frame: Vec<u8>, is_native: bool) {
        if is_native {
            self.counters.native_sent += 1;
        } else {
            self.counters.forwarded += ports.len() as u64;
        }
        self.leave(ready, ports, frame);
    }

    /// Bridges a frame that has arrived on `from` at `now` to `ports`, without the CPU.
    pub(crate) fn bridge(
        &mut self,
        now: Instant,
        from: PortNumber,
        ports: PortMask,
        frame: Vec<u8>,
    ) {
        let length = length_with_fcs(frame.len());
        let received = &mut self.hardware[from.index()];
        received.received_bytes += length as u64;
        let ready = self.egress.bridged_at(now);
        let mut departures = [None; PORTS];
        for port in ports.iter() {
            departures[port.index()] = self.egress.bridge(ready, port, length);
        }
        let lost = ports.len() - departures.iter().flatten().count();
        received.received_dropped += lost as u64;
        if lost == ports.len() {
            self.counters.dropped_switch += 1;
        } else {
            self.counters.bridged += 1;
        }
        self.counters.forwarded += (ports.len() - lost) as u64;
        self.give_out(departures, frame);
    }

    /// A frame leaves the integrated switch by `ports`, by each as soon as that is free.
    #[inline]
    fn leave(&mut self, ready: Instant, ports: PortMask, frame: Vec<u8>) {
        let length = length_with_fcs(frame.len());
        if let Some(port) = ports.only() {
            let at = self.egress.depart(ready, port, length);
            self.hardware[port.index()].sent_bytes += length as u64;
            return self.push(at, OutputKind::Frame { ports, data: frame });
        }
        let mut departures = [None; PORTS];
        for port in ports.iter() {
            departures[port.index()] = Some(self.egress.depart(ready, port, length));
        }
        self.give_out(departures, frame);
    }

    /// A frame departs by each port at its instant.
    fn give_out(&mut self, departures: [Option<Instant>; PORTS], frame: Vec<u8>) {
        let length = length_with_fcs(frame.len());
        // Ports by which it departs at the same instant share one output.
        let mut group: Option<(Instant, PortMask)> = None;
        let ports = PortMask::all().iter().zip(departures);
        for (port, at) in ports.filter_map(|(port, at)| Some((port, at?))) {
            self.hardware[port.index()].sent_bytes += length as u64;
            group = match group {
                Some((other, ports)) if other == at => Some((at, ports.with(port))),
                Some((other, ports)) => {
                    let data = self.pool.copy(&frame);
                    self.push(other, OutputKind::Frame { ports, data });
                    Some((at, PortMask::EMPTY.with(port)))
                }
                None => Some((at, PortMask::EMPTY.with(port))),
            };
        }
        match group {
            Some((at, ports)) => self.push(at, OutputKind::Frame { ports, data: frame }),
            None => self.pool.recycle(frame),
        }
    }
}
