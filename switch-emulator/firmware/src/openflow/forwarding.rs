//! Forwarding of frames by the agent: table lookup, actions, `PACKET_IN`, `PACKET_OUT`.

use super::agent::Agent;
use super::flow_cache::{CacheSlot, CachedAction, FlowKey, TableKind};
use super::spec::port_config;
use crate::actions::{tail_tag, Actions, Destination, Rewriter};
use crate::buffers::{length_with_fcs, ReceivedFrame};
use crate::cost::FrameTime;
use crate::event::{count, Event};
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::packet::Key;
use crate::port::{PortMask, PortNumber};
use crate::profile::CpuPortTags;
use crate::quirks::Quirk;
use crate::time::{Duration, Instant};
use of_switch::MatchedEntries;
use openflow::bytes::be16;
use openflow::message;
use openflow::v1_0::{port, Match};
use openflow::wire::{HEADER_BYTES, PACKET_OUT_BYTES, VERSION_1_0};

/// Types that pass the EtherType filter.
const USUAL_TYPES: [u16; 8] = [
    0x0800, 0x0806, 0x86dd, 0x0842, 0x8100, 0x88e7, 0x8847, 0x88cc,
];

/// Why a frame goes to the controller.
const NO_MATCH: u8 = 0;
const ACTION: u8 = 1;

/// Decision of the table lookup on a frame.
enum Decision {
    Drop,
    Miss,
    Use {
        /// Entry with the actions; `None` for actions of a message.
        entry: Option<usize>,
        actions: Actions,
    },
}

impl Agent {
    /// Handles a frame. Returns how long the CPU is busy with it.
    #[inline]
    pub(crate) fn frame(
        &mut self,
        frame: ReceivedFrame,
        iteration: &mut LoopIteration,
    ) -> Duration {
        let ReceivedFrame { port, mut data, .. } = frame;
        let stripped = self.config.cpu_port_tags == CpuPortTags::Removed && remove_tag(&mut data);
        let length = length_with_fcs(data.len());
        iteration.out.counters.processed += 1;
        // The cache is keyed by the frame as it arrived, so a frame that has lost its tag has no key.
        let flow_key = FlowKey::read(&data).filter(|_| !stripped);
        let flow_key = flow_key.map(|key| key.with_port(port));
        let hit = flow_key.and_then(|flow_key| self.flow_cache.lookup(&flow_key));
        if let Some(cached) = hit.map(|(_, cached)| *cached) {
            count(&mut self.ports.received[port.index()], 1);
            count(&mut iteration.out.counters.searches, 1);
            count(
                &mut iteration.out.counters.entries_examined,
                cached.examined.into(),
            );
            self.begin_fast_path(iteration);
            self.tables
                .record_match(cached.table, cached.matched, data.len(), &self.time);
            let FrameTime { work, busy } = cached.time();
            iteration
                .out
                .send(iteration.began + work, cached.ports, data);
            return busy;
        }
        if self.halted || self.is_filtered(&data) {
            iteration.out.counters.dropped_policy += 1;
            iteration.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        self.ports.received[usize::from(port.get()) - 1] += 1;
        let in_port = u16::from(port.get());
        self.time.iteration_began = iteration.began;
        let receives = self.ports.without(
            PortMask::EMPTY.with(port),
            port_config::DOWN | port_config::NO_RECEIVE,
        );
        if receives.is_empty() {
            iteration.out.counters.dropped_policy += 1;
            iteration.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        if self.looks_up_in_13() {
            if self.forwards() && self.tables.use_spec13() {
                return self.frame_spec13(data, flow_key, port, iteration);
            }
            if self.forwards() {
                return self.frame_13(data, flow_key, port, iteration);
            }
            iteration.out.counters.dropped_policy += 1;
            iteration.out.pool.recycle(data);
            return self.costs.frame(length, self.costs.drop_ps(length)).busy;
        }
        let key = self.key(&data, in_port);
        let examined_before = iteration.out.counters.entries_examined;
        let (decision, cost_ps) = self.decide(&key, &data, iteration);
        let examined = iteration.out.counters.entries_examined - examined_before;
        let time = self.costs.frame(length, cost_ps);
        let cached = self.cacheable_action(&decision, in_port, time, examined);
        self.cache_action(flow_key, cached, iteration);
        let FrameTime { work, busy } = time;
        self.carry_out(
            iteration.began + work,
            &decision,
            key.tagged,
            data,
            in_port,
            iteration,
        );
        busy
    }

    /// Caches `cached` under `flow_key`. If either is `None`, invalidates the cache.
    pub(super) fn cache_action(
        &mut self,
        flow_key: Option<FlowKey>,
        cached: Option<CachedAction>,
        iteration: &mut LoopIteration,
    ) {
        match flow_key.zip(cached) {
            Some((flow_key, cached)) => {
                if let Some(deferred) = self.flow_cache.insert(flow_key, cached) {
                    self.count_deferred(&deferred, iteration.out);
                }
            }
            None => self.invalidate_flow_cache(iteration.out),
        }
    }

    /// Looks a frame up in the flow cache, by flow ID if there is one. Returns `None` on a miss.
    #[inline(always)]
    pub(crate) fn lookup_cached(
        &mut self,
        flow_id: Option<u32>,
        key: impl FnOnce() -> Option<FlowKey>,
        port: PortNumber,
    ) -> Option<(CacheSlot, CachedAction)> {
        let hinted = flow_id.and_then(|flow_id| self.flow_cache.lookup_by_hint(flow_id, port));
        if let Some((slot, cached)) = hinted {
            return Some((slot, *cached));
        }
        let flow_key = key()?.with_port(port);
        let (slot, cached) = match flow_id {
            Some(flow_id) => self.flow_cache.lookup_and_promote(&flow_key, flow_id),
            None => self.flow_cache.lookup(&flow_key),
        }?;
        Some((slot, *cached))
    }

    /// Counts a frame of `bytes` bytes (without FCS) that the fast path forwards.
    #[inline(always)]
    pub(crate) fn record_forwarded(
        &mut self,
        slot: CacheSlot,
        cached: &CachedAction,
        bytes: usize,
        iteration: &mut LoopIteration,
    ) {
        self.begin_fast_path(iteration);
        self.flow_cache.record_hit(slot);
        if cached.table != TableKind::Firmware10 {
            let matched = cached.matched;
            self.tables
                .record_match(cached.table, matched, bytes, &self.time);
        }
    }

    #[inline(always)]
    fn begin_fast_path(&mut self, iteration: &mut LoopIteration) {
        self.time.iteration_began = iteration.began;
        // The next event of the IP stack depends on when its timers run.
        iteration.only_forwarded = !self.is_on_network();
    }

    /// Returns the action to cache, or `None` unless the decision is to output the unchanged frame to one port.
    fn cacheable_action(
        &self,
        decision: &Decision,
        in_port: u16,
        time: FrameTime,
        examined: u64,
    ) -> Option<CachedAction> {
        let Decision::Use { entry, actions } = *decision else {
            return None;
        };
        let port = actions.only_output().filter(|port| *port != in_port)?;
        let ports = self.ports.without(
            PortMask::from_bits(tail_tag(port)),
            port_config::DOWN | port_config::NO_FORWARD,
        );
        let table = if self.config.quirks.has(Quirk::LimitedMatching) {
            TableKind::Firmware10
        } else {
            TableKind::Spec10
        };
        CachedAction::new(
            table,
            MatchedEntries::NONE.with(entry?)?,
            examined,
            ports,
            time,
        )
    }

    /// Returns what the firmware reads from a frame.
    pub(super) fn key(&self, frame: &[u8], in_port: u16) -> Key {
        let reads_arp = !self.config.quirks.has(Quirk::ArpFieldsUnmatched);
        Key::parse(frame, in_port, reads_arp)
    }

    pub(super) fn is_filtered(&self, frame: &[u8]) -> bool {
        self.config.ethertype_filter && !USUAL_TYPES.contains(&be16(frame, 12))
    }

    /// Returns whether frames are looked up in the tables of 1.3, if at all.
    fn looks_up_in_13(&self) -> bool {
        self.speaks_13()
            || self.tables.use_spec13()
            || (self.version == 0
                && self.tables.are_13()
                && !self.config.quirks.has(Quirk::PauseBeforeHello))
    }

    /// Returns whether the agent forwards frames.
    fn forwards(&self) -> bool {
        let known = self.version == VERSION_1_0
            || self.speaks_13()
            || (self.is_safe() && !self.config.quirks.has(Quirk::PauseBeforeHello));
        known && (self.is_established() || self.is_safe())
    }

    /// Looks a frame up. Returns the decision, and the cost of lookup and actions.
    fn decide(
        &mut self,
        key: &Key,
        frame: &[u8],
        iteration: &mut LoopIteration,
    ) -> (Decision, i64) {
        let length = length_with_fcs(frame.len());
        if !self.forwards() {
            iteration.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        if self.tables.table.is_underflowed() {
            self.tables.table.count_lookup();
            iteration.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        if self.drops_fragment(frame) {
            iteration.out.counters.dropped_policy += 1;
            return (Decision::Drop, self.costs.drop_ps(length));
        }
        let now = self.time.now();
        let found = if self.config.quirks.has(Quirk::LimitedMatching) {
            self.tables.table.lookup(key, frame.len(), now)
        } else {
            let fields = Match::of_frame(frame, key.in_port());
            self.tables.table.spec_lookup(&fields, frame.len(), now)
        };
        iteration.out.counters.searches += 1;
        iteration.out.counters.entries_examined += found.examined as u64;
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
            iteration.out.counters.missed += 1;
            if !key.matchable && self.config.quirks.has(Quirk::LimitedMatching) {
                self.warn_unmatchable(key, iteration);
            }
            (Decision::Miss, found.cost_ps + self.costs.miss_ps(length))
        }
    }

    /// Emits an event, once, if this frame cannot match any installed entry.
    fn warn_unmatchable(&mut self, key: &Key, iteration: &mut LoopIteration) {
        if !self.warned_unmatchable && self.tables.table.count() > 0 {
            self.warned_unmatchable = true;
            let ethertype = key.ethertype();
            iteration
                .out
                .event(iteration.began, Event::FrameUnmatchable { ethertype });
        }
    }

    fn carry_out(
        &mut self,
        at: Instant,
        decision: &Decision,
        tagged: bool,
        mut data: Vec<u8>,
        in_port: u16,
        iteration: &mut LoopIteration,
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
                    self.packet_in(at, NO_MATCH, in_port, &data, iteration);
                }
            }
            Decision::Use { entry, actions } => {
                let spec = !self.config.quirks.has(Quirk::ActionsByFirstTag);
                let all = if self.config.quirks.has(Quirk::FloodIsAll) {
                    self.config.flooded
                } else {
                    self.config.openflow_ports
                };
                let flooded = self.ports.without(all, port_config::NO_FLOOD);
                let mut rewriter = Rewriter::new(&mut data, in_port, tagged, flooded, all, spec);
                let mut sent = false;
                let mut rest = actions.iter();
                while let Some(action) = rest.next() {
                    match rewriter.perform(action) {
                        None => continue,
                        Some(Destination::Controller { max_bytes }) => {
                            let whole = rewriter.frame.len();
                            // Without a buffer on the switch the specification asks for the whole frame.
                            let kept = if spec {
                                whole
                            } else {
                                whole.min(max_bytes.into())
                            };
                            self.packet_in(at, ACTION, in_port, &rewriter.frame[..kept], iteration);
                        }
                        Some(Destination::Ports(ports)) => {
                            let closed = port_config::DOWN | port_config::NO_FORWARD;
                            let ports = self.ports.without(ports, closed);
                            if rest.len() == 0 {
                                return iteration.out.send(at, ports, data);
                            }
                            iteration.out.send_copy(at, ports, rewriter.frame);
                        }
                        // Only a message may send to the table: an entry could send to itself.
                        Some(Destination::Table) if entry.is_some() => continue,
                        Some(Destination::Table) => {
                            let copy = iteration.out.pool.copy_unpadded(rewriter.frame);
                            let key = self.key(&copy, in_port);
                            self.look_up_and_carry_out(at, copy, &key, iteration);
                        }
                    }
                    sent = true;
                }
                iteration.out.counters.dropped_flow += u64::from(!sent);
            }
        }
        iteration.out.pool.recycle(data);
    }

    /// Forwards a frame by the table, as if it had arrived on the port of its `key`.
    pub(super) fn look_up_and_carry_out(
        &mut self,
        at: Instant,
        data: Vec<u8>,
        key: &Key,
        iteration: &mut LoopIteration,
    ) {
        let (decision, cost_ps) = self.decide(key, &data, iteration);
        iteration.cost_ps += cost_ps;
        let overwrites = self.config.quirks.has(Quirk::InsertedTagOverwrites);
        if let (Decision::Use { actions, .. }, true) = (&decision, overwrites) {
            let spec = !self.config.quirks.has(Quirk::ActionsByFirstTag);
            self.rx.pushed_out = pushed_out(actions, &data, key, spec);
        }
        self.carry_out(at, &decision, key.tagged, data, key.in_port(), iteration);
    }

    /// Applies actions to a frame.
    pub(super) fn perform_actions(
        &mut self,
        at: Instant,
        actions: &Actions,
        data: Vec<u8>,
        in_port: u16,
        iteration: &mut LoopIteration,
    ) {
        let tagged = self.key(&data, in_port).tagged;
        let decision = Decision::Use {
            entry: None,
            actions: *actions,
        };
        self.carry_out(at, &decision, tagged, data, in_port, iteration);
    }

    fn packet_in(
        &mut self,
        at: Instant,
        reason: u8,
        in_port: u16,
        frame: &[u8],
        iteration: &mut LoopIteration,
    ) {
        // The IP stack also takes messages while its connection opens or is half closed.
        let is_open = self.is_established() || self.session.is_half_open();
        if !is_open || self.version != VERSION_1_0 {
            return;
        }
        let message = self
            .reply(message::PACKET_IN, [0; 4])
            .u32(u32::MAX) // not buffered
            .u16(frame.len() as u16)
            .u16(in_port)
            .u8(reason)
            .u8(0)
            .bytes(frame);
        self.session
            .write(at, MemoryClass::Exact, message.finish(), iteration.out);
        if !iteration.in_segment {
            self.session.transmit(at, iteration.out);
        }
    }

    /// Sends the frame of a `PACKET_OUT`. Its actions are not performed: only the port of the last one counts.
    pub(super) fn packet_out(
        &mut self,
        bytes: &[u8],
        length: usize,
        iteration: &mut LoopIteration,
    ) {
        let in_port = be16(bytes, HEADER_BYTES + 4);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, HEADER_BYTES + 6));
        let port = be16(bytes, data_at - 4);
        let costs = self.costs.control();
        iteration.cost_ps += costs.packet_out_ps;
        let Some(data) = bytes.get(data_at..length) else {
            return; // the actions would reach beyond the message
        };
        let extra_bytes = length_with_fcs(data.len()) as i64 - 64;
        iteration.cost_ps += costs.packet_out_per_byte_ps * extra_bytes;
        let at = iteration.reached();
        let mask = match port {
            port::TABLE => {
                // The frame is not padded: the lookup reads what follows it in place of missing bytes.
                let key = self.key(&bytes[data_at..], in_port);
                let data = iteration.out.pool.copy_unpadded(data);
                return self.look_up_and_carry_out(at, data, &key, iteration);
            }
            port::FLOOD => {
                // The firmware subtracts the ingress port's bit, whether it is set or not.
                let ingress = match in_port.wrapping_sub(1) % 256 {
                    shift @ 0..32 => 1_u32 << shift,
                    _ => 0,
                };
                u32::from(self.config.flooded.bits()).wrapping_sub(ingress) as u8
            }
            port => tail_tag((port.wrapping_sub(1) % 256) + 1),
        };
        let data = iteration.out.pool.copy(data);
        iteration.out.send_tagged(at, mask, data);
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
/// Returns the bytes that tags inserted by the actions push beyond the end of a frame. The frame of a `PACKET_OUT` lies
/// in the receive buffer, so they end up where the next message begins.
fn pushed_out(actions: &Actions, data: &[u8], key: &Key, spec: bool) -> Vec<u8> {
    let mut frame = data.to_vec();
    let nowhere = PortMask::EMPTY;
    let mut rewriter = Rewriter::new(
        &mut frame,
        key.in_port(),
        key.tagged,
        nowhere,
        nowhere,
        spec,
    );
    for action in actions.iter() {
        rewriter.perform(action);
    }
    frame.split_off(data.len().min(frame.len()))
}
