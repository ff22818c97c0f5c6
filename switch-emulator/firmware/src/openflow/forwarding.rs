//! What the agent does with frames: table search, actions, `PACKET_IN`, `PACKET_OUT`.

use super::agent::{Agent, VERSION_1_0};
use super::standard::port_config;
use super::ways::{Found, Head, Searched, Way};
use super::wire::{message, HEADER_BYTES};
use crate::actions::{ports, tail_tag, Actions, Destination, Rewriter};
use crate::buffers::{length_with_fcs, ReceivedFrame};
use crate::bytes::be16;
use crate::cost::FrameTime;
use crate::event::{count, Event};
use crate::hits::Hits;
use crate::matching::Match;
use crate::native::Buffer;
use crate::packet::Key;
use crate::pass::Pass;
use crate::port::{PortMask, PortNumber};
use crate::profile::CpuPortTags;
use crate::quirks::Quirk;
use crate::time::{Duration, Instant};

/// Types that pass the EtherType filter.
const USUAL_TYPES: [u16; 8] = [
    0x0800, 0x0806, 0x86dd, 0x0842, 0x8100, 0x88e7, 0x8847, 0x88cc,
];

/// Why a frame goes to the controller.
const NO_MATCH: u8 = 0;
const ACTION: u8 = 1;

/// Where actions of `PACKET_OUT` begin.
const PACKET_OUT_BYTES: usize = 16;

/// What the search decides on a frame.
enum Decision {
    Drop,
    Miss,
    Use {
        /// The entry that has the actions; nothing if a message brought them.
        entry: Option<usize>,
        actions: Actions,
    },
}

impl Agent {
    /// Handles a frame in this pass; gives how long the CPU is busy with it.
    #[inline]
    pub(crate) fn frame(&mut self, frame: ReceivedFrame, pass: &mut Pass) -> Duration {
        let ReceivedFrame { port, mut data, .. } = frame;
        let stripped = self.config.cpu_port_tags == CpuPortTags::Removed && remove_tag(&mut data);
        let length = length_with_fcs(data.len());
        pass.out.counters.processed += 1;
        // Cached actions are found by the frame as it arrived, so a frame that has lost its tag has none.
        let head = Head::read(&data).filter(|_| !stripped);
        let head = head.map(|head| head.by(port));
        let known = head.and_then(|head| self.ways.find(&head));
        if let Some(way) = known.map(|(_, way)| *way) {
            count(&mut self.ports.received[port.index()], 1);
            count(&mut pass.out.counters.searches, 1);
            count(&mut pass.out.counters.entries_examined, way.examined.into());
            self.note_known_way(pass);
            self.tables
                .looked_up(way.searched, way.hits, data.len(), &self.time);
            let FrameTime { work, busy } = way.time();
            pass.out.send(pass.began + work, way.ports, data);
            return busy;
        }
        if self.halted || self.is_filtered(&data) {
            pass.out.counters.dropped_policy += 1;
            pass.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        self.ports.received[usize::from(port.get()) - 1] += 1;
        let in_port = u16::from(port.get());
        self.time.pass_began = pass.began;
        let receives = self.ports.without(
            PortMask::EMPTY.with(port),
            port_config::DOWN | port_config::NO_RECEIVE,
        );
        if receives.is_empty() {
            pass.out.counters.dropped_policy += 1;
            pass.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        if self.speaks_13() || self.tables.are_standard13() {
            if self.forwards() && self.tables.are_standard13() {
                return self.frame_standard13(data, head, port, pass);
            }
            if self.forwards() {
                return self.frame_13(data, head, port, pass);
            }
            pass.out.counters.dropped_policy += 1;
            pass.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        let key = Key::parse(&data, in_port);
        let examined_before = pass.out.counters.entries_examined;
        let (decision, cost_ps) = self.decide(&key, &data, pass);
        let examined = pass.out.counters.entries_examined - examined_before;
        let time = self.costs.frame(length, cost_ps);
        let way = self.way(&decision, in_port, time, examined);
        self.learn(head, way, pass);
        let FrameTime { work, busy } = time;
        self.carry_out(
            pass.began + work,
            &decision,
            key.tagged,
            data,
            in_port,
            pass,
        );
        busy
    }

    /// A frame with this head, if it has one, has gone this way, if it was one.
    pub(super) fn learn(&mut self, head: Option<Head>, way: Option<Way>, pass: &mut Pass) {
        match head.zip(way) {
            Some((head, way)) => {
                if let Some(passed) = self.ways.learn(head, way) {
                    self.count_passed(&passed, pass.out);
                }
            }
            None => self.forget_ways(pass.out),
        }
    }

    /// Where a frame goes that is like one before.
    #[inline(always)]
    pub(crate) fn known_way(
        &mut self,
        likeness: Option<u32>,
        head: impl FnOnce() -> Option<Head>,
        port: PortNumber,
    ) -> Option<(Found, Way)> {
        let like = likeness.and_then(|likeness| self.ways.find_like(likeness, port));
        if let Some((found, way)) = like {
            return Some((found, *way));
        }
        let head = head()?.by(port);
        let (found, way) = match likeness {
            Some(likeness) => self.ways.find_also_like(&head, likeness),
            None => self.ways.find(&head),
        }?;
        Some((found, *way))
    }

    /// A frame of `bytes` bytes (without FCS) that is like one before passes the board in one step, by this way.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self, found: Found, way: &Way, bytes: usize, pass: &mut Pass) {
        self.note_known_way(pass);
        self.ways.take(found);
        if way.searched != Searched::Table {
            let hits = way.hits;
            self.tables.looked_up(way.searched, hits, bytes, &self.time);
        }
    }

    #[inline(always)]
    fn note_known_way(&mut self, pass: &mut Pass) {
        self.time.pass_began = pass.began;
        // What the board's own IP stack has to do next depends on when its timers run.
        pass.has_only_forwarded = !self.is_on_network();
    }

    /// What becomes of all frames with this head, if an entry just sends them out of one port, unchanged.
    fn way(
        &self,
        decision: &Decision,
        in_port: u16,
        time: FrameTime,
        examined: u64,
    ) -> Option<Way> {
        let Decision::Use { entry, actions } = *decision else {
            return None;
        };
        let port = actions.only_output().filter(|port| *port != in_port)?;
        let ports = self.ports.without(
            PortMask::from_bits(tail_tag(port)),
            port_config::DOWN | port_config::NO_FORWARD,
        );
        let searched = if self.config.quirks.has(Quirk::FewMatches) {
            Searched::Table
        } else {
            Searched::StandardTable
        };
        Way::new(searched, Hits::NONE.with(entry?)?, examined, ports, time)
    }

    pub(super) fn is_filtered(&self, frame: &[u8]) -> bool {
        self.config.ethertype_filter && !USUAL_TYPES.contains(&be16(frame, 12))
    }

    /// Whether frames are looked up at all.
    fn forwards(&self) -> bool {
        let known = self.version == VERSION_1_0
            || self.speaks_13()
            || (self.is_safe() && !self.config.quirks.has(Quirk::PauseBeforeHello));
        known && (self.is_established() || self.is_safe())
    }

    /// Searches the table; gives what to do and what search and actions cost.
    fn decide(&mut self, key: &Key, frame: &[u8], pass: &mut Pass) -> (Decision, i64) {
        let length = length_with_fcs(frame.len());
        if !self.forwards() {
            pass.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        if self.tables.table.is_underflowed() {
            self.tables.table.count_lookup();
            pass.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        if self.drops_fragment(frame) {
            pass.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        let now = self.time.now();
        let found = if self.config.quirks.has(Quirk::FewMatches) {
            self.tables.table.lookup(key, frame.len(), now)
        } else {
            let fields = Match::of_frame(frame, key.in_port());
            self.tables.table.standard_lookup(&fields, frame.len(), now)
        };
        pass.out.counters.searches += 1;
        pass.out.counters.entries_examined += found.examined as u64;
        if let Some(index) = found.index {
            let actions = self.tables.table.actions(index);
            let cost_ps = found.cost_ps + self.costs.actions_ps(&actions, key.tagged, length);
            (
                Decision::Use {
                    entry: Some(index),
                    actions,
                },
                cost_ps,
            )
        } else {
            pass.out.counters.missed += 1;
            if !key.matchable && self.config.quirks.has(Quirk::FewMatches) {
                self.tell_unmatchable(key, pass);
            }
            (Decision::Miss, found.cost_ps + self.costs.miss_ps(length))
        }
    }

    /// Says once that this frame could not have matched any of the entries there are.
    fn tell_unmatchable(&mut self, key: &Key, pass: &mut Pass) {
        if !self.told_unmatchable && self.tables.table.count() > 0 {
            self.told_unmatchable = true;
            let ethertype = key.ethertype();
            pass.out
                .event(pass.began, Event::FrameUnmatchable { ethertype });
        }
    }

    fn carry_out(
        &mut self,
        at: Instant,
        decision: &Decision,
        tagged: bool,
        mut data: Vec<u8>,
        in_port: u16,
        pass: &mut Pass,
    ) {
        match decision {
            Decision::Drop => {}
            Decision::Miss => {
                let silent = u8::try_from(in_port)
                    .ok()
                    .and_then(PortNumber::new)
                    .is_some_and(|port| {
                        self.ports
                            .without(PortMask::EMPTY.with(port), port_config::NO_PACKET_IN)
                            .is_empty()
                    });
                if !silent {
                    self.packet_in(at, NO_MATCH, in_port, &data, pass);
                }
            }
            Decision::Use { actions, .. } => {
                let standard = !self.config.quirks.has(Quirk::TagsAtTheBeginning);
                let all = if self.config.quirks.has(Quirk::FloodIsAll) {
                    self.config.flooded
                } else {
                    self.config.openflow_ports
                };
                let flooded = self.ports.without(all, port_config::NO_FLOOD);
                let mut rewriter =
                    Rewriter::new(&mut data, in_port, tagged, flooded, all, standard);
                let mut sent = false;
                let mut rest = actions.iter();
                while let Some(action) = rest.next() {
                    match rewriter.perform(action) {
                        None => continue,
                        Some(Destination::Controller { max_bytes }) => {
                            let whole = rewriter.frame.len();
                            // Without a buffer on the switch the specification asks for the whole frame.
                            let kept = if standard {
                                whole
                            } else {
                                whole.min(max_bytes.into())
                            };
                            self.packet_in(at, ACTION, in_port, &rewriter.frame[..kept], pass);
                        }
                        Some(Destination::Ports(ports)) => {
                            let closed = port_config::DOWN | port_config::NO_FORWARD;
                            let ports = self.ports.without(ports, closed);
                            if rest.len() == 0 {
                                return pass.out.send(at, ports, data);
                            }
                            pass.out.send_copy(at, ports, rewriter.frame);
                        }
                        Some(Destination::Table) => {
                            let copy = pass.out.pool.copy_unpadded(rewriter.frame);
                            let key = Key::parse(&copy, in_port);
                            self.look_up_and_carry_out(at, copy, &key, pass);
                        }
                    }
                    sent = true;
                }
                pass.out.counters.dropped_flow += u64::from(!sent);
            }
        }
        pass.out.pool.recycle(data);
    }

    /// Sends a frame by the table, as if it had come in on the port of its `key`.
    pub(super) fn look_up_and_carry_out(
        &mut self,
        at: Instant,
        data: Vec<u8>,
        key: &Key,
        pass: &mut Pass,
    ) {
        let (decision, cost_ps) = self.decide(key, &data, pass);
        pass.cost_ps += cost_ps;
        if let (Decision::Use { actions, .. }, true) = (
            &decision,
            self.config.quirks.has(Quirk::InsertedTagOverwrites),
        ) {
            self.input.pushed_out = pushed_out(actions, &data, key);
        }
        self.carry_out(at, &decision, key.tagged, data, key.in_port(), pass);
    }

    /// Performs actions on a frame.
    pub(super) fn perform_actions(
        &mut self,
        at: Instant,
        actions: &Actions,
        data: Vec<u8>,
        in_port: u16,
        pass: &mut Pass,
    ) {
        let tagged = Key::parse(&data, in_port).tagged;
        let decision = Decision::Use {
            entry: None,
            actions: *actions,
        };
        self.carry_out(at, &decision, tagged, data, in_port, pass);
    }

    fn packet_in(&mut self, at: Instant, reason: u8, in_port: u16, frame: &[u8], pass: &mut Pass) {
        // The board's own stack takes messages also while its connection begins or is half closed.
        let is_open = self.is_established() || self.session.is_half_open();
        if !is_open || self.version != VERSION_1_0 {
            return;
        }
        let notice = self
            .reply(message::PACKET_IN, [0; 4])
            .u32(u32::MAX) // not buffered
            .u16(frame.len() as u16)
            .u16(in_port)
            .u8(reason)
            .u8(0)
            .bytes(frame);
        self.session
            .write(at, Buffer::Exact, notice.finish(), pass.out);
        if !pass.in_segment {
            self.session.transmit(at, pass.out);
        }
    }

    /// Sends the frame of a `PACKET_OUT`. Its actions are not performed: only the port of the last one counts.
    pub(super) fn packet_out(&mut self, bytes: &[u8], length: usize, pass: &mut Pass) {
        let in_port = be16(bytes, HEADER_BYTES + 4);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, HEADER_BYTES + 6));
        let port = be16(bytes, data_at - 4);
        let costs = self.costs.control();
        pass.cost_ps += costs.packet_out_ps;
        let Some(data) = bytes.get(data_at..length) else {
            return; // the actions would reach beyond the message
        };
        let extra_bytes = length_with_fcs(data.len()) as i64 - 64;
        pass.cost_ps += costs.packet_out_per_byte_ps * extra_bytes;
        let at = pass.reached();
        let mask = match port {
            ports::TABLE => {
                // The frame is not padded first: what lies behind it is read in place of the bytes that it lacks.
                let key = Key::parse(&bytes[data_at..], in_port);
                let data = pass.out.pool.copy_unpadded(data);
                return self.look_up_and_carry_out(at, data, &key, pass);
            }
            ports::FLOOD => {
                // The firmware subtracts the ingress port's bit, whether it is set or not.
                let ingress = match in_port.wrapping_sub(1) % 256 {
                    shift @ 0..32 => 1_u32 << shift,
                    _ => 0,
                };
                u32::from(self.config.flooded.bits()).wrapping_sub(ingress) as u8
            }
            port => tail_tag((port.wrapping_sub(1) % 256) + 1),
        };
        let data = pass.out.pool.copy(data);
        pass.out.send_tagged(at, mask, data);
    }
}

/// Removes the outermost 802.1Q tag of a frame; returns whether it had one.
fn remove_tag(frame: &mut Vec<u8>) -> bool {
    const ADDRESSES_BYTES: usize = 12;
    const TAG_BYTES: usize = 4;
    let tagged =
        frame.len() >= ADDRESSES_BYTES + TAG_BYTES && be16(frame, ADDRESSES_BYTES) == 0x8100;
    if tagged {
        frame.drain(ADDRESSES_BYTES..ADDRESSES_BYTES + TAG_BYTES);
    }
    tagged
}
/// The bytes that tags inserted by the actions push beyond the end of a frame. The frame of a `PACKET_OUT` lies in the
/// receive buffer, so they end up where the next message begins.
fn pushed_out(actions: &Actions, data: &[u8], key: &Key) -> Vec<u8> {
    let mut frame = data.to_vec();
    let nowhere = PortMask::EMPTY;
    let mut rewriter = Rewriter::new(
        &mut frame,
        key.in_port(),
        key.tagged,
        nowhere,
        nowhere,
        false,
    );
    for action in actions.iter() {
        rewriter.perform(action);
    }
    frame.split_off(data.len().min(frame.len()))
}
