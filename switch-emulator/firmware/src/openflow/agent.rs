//! The OpenFlow agent of a board: which dataplane is in force, and the way of frames to it through the flow cache.

use std::sync::Arc;

use super::config::AgentConfig;
use super::context::AgentContext;
use super::dataplane::Dataplane;
use super::firmware10::Firmware10;
use super::flow_cache::{
    CacheSlot, CachedAction, DeferredCounters, FlowCache, FlowKey, HitCounting,
};
use super::ports::port_config;
use super::spec13::Spec13;
use super::state::AgentState;
use crate::block_pool::BlockPool;
use crate::buffers::{length_with_fcs, ReceivedFrame};
use crate::config::{Config, ControlCarrier};
use crate::cost::{Costs, FrameTime};
use crate::event::{count, Event};
use crate::loop_iteration::LoopIteration;
use crate::openflow13::{Flow13, Switch13};
use crate::outbox::Outbox;
use crate::port::{PortMask, PortNumber};
use crate::profile::{CpuPortTags, Profile};
use crate::quirks::Quirk;
use crate::table::{Flow, FlowTable};
use crate::time::{Duration, Instant};
use of_switch::MatchedEntries;
use openflow::bytes::be16;
use openflow::wire::VERSION_1_3;

/// Types that pass the EtherType filter.
const USUAL_TYPES: [u16; 8] = [
    0x0800, 0x0806, 0x86dd, 0x0842, 0x8100, 0x88e7, 0x8847, 0x88cc,
];

/// The agent of one board.
#[derive(Debug)]
#[repr(C)] // what each frame needs comes first, as in the board
pub(crate) struct Agent {
    /// Flow cache.
    pub(super) flow_cache: FlowCache,
    pub(super) state: AgentState,
    /// OpenFlow 1.0.
    pub(super) v10: Firmware10,
    /// OpenFlow 1.3, on boards that speak it.
    pub(super) v13: Option<Box<dyn Dataplane>>,
    /// Whether 1.3 is the version that was agreed on last; before that, whether it is the configured one.
    is_13: bool,
}

impl Agent {
    /// `seed` draws what is random in the IP stack.
    pub(crate) fn new(profile: &Profile, config: &Config, seed: u64) -> Self {
        let costs = Arc::new(Costs::new(profile));
        let v10 = Firmware10::new(profile, config, &costs);
        let v13 = profile.cpu.openflow13.clone().map(|costs| {
            let dataplane: Box<dyn Dataplane> = if config.quirks.has(Quirk::OpenFlow13) {
                Box::new(Switch13::new(costs, v10.table.pool().clone()))
            } else {
                Box::new(Spec13::new(costs))
            };
            dataplane
        });
        Self {
            flow_cache: FlowCache::default(),
            state: AgentState::new(profile, config, costs, seed),
            v10,
            v13,
            is_13: config.openflow_version == VERSION_1_3,
        }
    }

    /// Returns the dataplane that the session speaks: that of 1.0 unless it is 1.3.
    pub(super) fn spoken(&self) -> &dyn Dataplane {
        match &self.v13 {
            Some(v13) if self.state.speaks_13() => &**v13,
            _ => &self.v10,
        }
    }

    /// Returns the dataplane of the version that was agreed on last, or the configured one, and the state that it needs.
    pub(super) fn agreed(&mut self) -> (&mut dyn Dataplane, &mut AgentState) {
        self.choose(self.is_13)
    }

    /// Returns the dataplane whose entries the board tends: the one agreed on. Before the HELLO of a session the
    /// firmware takes that of 1.0.
    pub(super) fn tended(&mut self) -> (&mut dyn Dataplane, &mut AgentState) {
        let AgentState {
            version, config, ..
        } = &self.state;
        let waits = *version == 0 && config.quirks.has(Quirk::OpenFlow13);
        self.choose(self.is_13 && !waits)
    }

    /// Returns the dataplane of 1.3, if there is one and it is asked for, or else that of 1.0.
    pub(super) fn choose(&mut self, is_13: bool) -> (&mut dyn Dataplane, &mut AgentState) {
        match &mut self.v13 {
            Some(v13) if is_13 => (&mut **v13, &mut self.state),
            _ => (&mut self.v10, &mut self.state),
        }
    }

    /// Begins a piece of work.
    pub(super) fn context<'a, 'b>(
        &'a mut self,
        iteration: &'a mut LoopIteration<'b>,
    ) -> AgentContext<'a, 'b> {
        let state = &mut self.state;
        AgentContext { state, iteration }
    }

    /// Switches to the negotiated version. By the specification, removes the entries of the other one. On the board, both
    /// share the block pool, and the version finds it as the other one has left it.
    pub(super) fn agree_on(&mut self, version: u8) {
        self.state.version = version;
        let was_13 = std::mem::replace(&mut self.is_13, version == VERSION_1_3);
        self.v10.version_agreed();
        let Some(v13) = &mut self.v13 else { return };
        v13.version_agreed();
        let (chosen, other): (&mut dyn Dataplane, &mut dyn Dataplane) = if self.is_13 {
            (&mut **v13, &mut self.v10)
        } else {
            (&mut self.v10, &mut **v13)
        };
        if !self.state.has(Quirk::OpenFlow13) {
            other.clear();
        } else if let Some(pool) = other.pool().filter(|_| was_13 != self.is_13) {
            chosen.take_over(pool, other.count());
        }
    }

    /// Erases the entries of both versions: their count is one number.
    pub(super) fn clear(&mut self) {
        self.v10.clear();
        if let Some(v13) = &mut self.v13 {
            v13.clear();
        }
    }

    pub(super) fn clear_if_secure(&mut self) {
        if !self.state.is_safe() {
            self.clear();
        }
    }

    /// Returns the block pool, which both versions share: that of the version that was agreed on last.
    pub(crate) fn pool(&self) -> &BlockPool {
        let v13 = self.v13.as_ref().filter(|_| self.is_13);
        v13.and_then(|v13| v13.pool())
            .unwrap_or_else(|| self.v10.table.pool())
    }

    /// Returns the OpenFlow 1.0 table, whose counters lack the deferred ones.
    pub(crate) const fn table(&self) -> &FlowTable {
        &self.v10.table
    }

    /// Returns the entries of OpenFlow 1.0 in their real order, deferred counters included.
    pub(crate) fn counted_flows(&self) -> Vec<Flow> {
        let mut flows = self.v10.dump().v1_0;
        let is_deferred = |it: &DeferredCounters| it.counting == HitCounting::Deferred;
        for DeferredCounters { hits, .. } in self.deferred_counters().filter(is_deferred) {
            if let Some(flow) = flows.get_mut(hits.entry) {
                hits.add_to(&mut flow.packets, &mut flow.bytes);
            }
        }
        flows
    }

    /// Returns the entries of OpenFlow 1.3 as values.
    pub(crate) fn flows13(&self) -> Vec<Flow13> {
        let v13 = self.v13.as_ref();
        v13.map_or_else(Vec::new, |v13| v13.dump().v1_3)
    }

    /// Powers up: emits an event if the settings rule out any controller.
    pub(crate) fn power_up(&mut self, now: Instant, out: &mut Outbox) {
        self.state.time.powered_up = now;
        let AgentConfig {
            forced_version,
            knows_13,
            ..
        } = self.state.config;
        if forced_version == VERSION_1_3 && !knows_13 {
            out.event(now, Event::NewerVersionForced);
        }
    }

    /// Returns whether frames from `port` go to the agent.
    #[inline]
    pub(crate) const fn handles(&self, port: PortNumber) -> bool {
        self.state.connection.is_enabled() && self.state.config.openflow_ports.contains(port)
    }

    pub(crate) fn set_link(&mut self, port: PortNumber, up: bool, out: &mut Outbox) {
        self.invalidate_flow_cache(out);
        self.state.ports.set_link(port, up);
    }

    /// Returns the seconds since `installed` on the agent's clock.
    pub(crate) const fn age_s(&self, installed: Instant) -> u32 {
        self.state.time.age_s(installed)
    }

    /// Returns whether the session with the controller is established.
    pub(crate) fn is_established(&self) -> bool {
        self.state.is_established()
    }

    /// Returns whether the board keeps its connections itself, by frames of its native ports.
    #[inline]
    pub(crate) const fn is_on_network(&self) -> bool {
        matches!(self.state.config.control, ControlCarrier::Network)
    }
}

/// Frames.
impl Agent {
    /// Handles a frame. Returns how long the CPU is busy with it.
    #[inline]
    pub(crate) fn frame(
        &mut self,
        frame: ReceivedFrame,
        iteration: &mut LoopIteration,
    ) -> Duration {
        let ReceivedFrame { port, mut data, .. } = frame;
        let stripped =
            self.state.config.cpu_port_tags == CpuPortTags::Removed && remove_tag(&mut data);
        let length = length_with_fcs(data.len());
        iteration.out.counters.processed += 1;
        // The cache is keyed by the frame as it arrived, so a frame that has lost its tag has no key.
        let flow_key = FlowKey::read(&data).filter(|_| !stripped);
        let flow_key = flow_key.map(|key| key.with_port(port));
        let hit = flow_key.and_then(|flow_key| self.flow_cache.lookup(&flow_key));
        if let Some(cached) = hit.map(|(_, cached)| *cached) {
            count(&mut self.state.ports.received[port.index()], 1);
            count(&mut iteration.out.counters.searches, 1);
            count(
                &mut iteration.out.counters.entries_examined,
                cached.examined.into(),
            );
            self.begin_fast_path(iteration);
            self.record_match(cached.matched, data.len());
            let FrameTime { work, busy } = cached.time();
            iteration
                .out
                .send(iteration.began + work, cached.ports, data);
            return busy;
        }
        if self.state.halted || self.is_filtered(&data) {
            return self.context(iteration).drop_frame(data, length);
        }
        self.state.ports.received[usize::from(port.get()) - 1] += 1;
        self.state.time.iteration_began = iteration.began;
        let receives = self.state.ports.without(
            PortMask::EMPTY.with(port),
            port_config::DOWN | port_config::NO_RECEIVE,
        );
        if receives.is_empty() || !self.state.forwards() {
            return self.context(iteration).drop_frame(data, length);
        }
        let (dataplane, state) = self.agreed();
        let mut cx = AgentContext { state, iteration };
        let (busy, cached) = dataplane.frame(&mut cx, data, port);
        self.cache_action(flow_key, cached, iteration);
        busy
    }

    /// Caches `cached` under `flow_key`. If either is `None`, invalidates the cache.
    fn cache_action(
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
        if cached.counting == HitCounting::Immediate {
            self.record_match(cached.matched, bytes);
        }
    }

    /// Counts a frame of `bytes` bytes that matches these entries. A cold function, since boards with the firmware's
    /// OpenFlow 1.0 table skip it on the fast path.
    #[cold]
    #[inline(never)]
    fn record_match(&mut self, matched: MatchedEntries, bytes: usize) {
        let (dataplane, state) = self.agreed();
        dataplane.record_match(&state.time, matched, bytes);
    }

    #[inline(always)]
    fn begin_fast_path(&mut self, iteration: &mut LoopIteration) {
        self.state.time.iteration_began = iteration.began;
        // The next event of the IP stack depends on when its timers run.
        iteration.only_forwarded = !self.is_on_network();
    }

    pub(super) fn is_filtered(&self, frame: &[u8]) -> bool {
        self.state.config.ethertype_filter && !USUAL_TYPES.contains(&be16(frame, 12))
    }

    /// Invalidates the flow cache after an event other than a forwarded frame, and adds its deferred counters.
    #[inline]
    pub(crate) fn invalidate_flow_cache(&mut self, out: &mut Outbox) {
        for deferred in self.flow_cache.invalidate() {
            self.count_deferred(&deferred, out);
        }
    }

    /// Adds deferred counters of the fast path.
    fn count_deferred(&mut self, deferred: &DeferredCounters, out: &mut Outbox) {
        deferred.count(out);
        let received = &mut self.state.ports.received[deferred.in_port.index()];
        count(received, deferred.frames());
        if deferred.counting == HitCounting::Deferred {
            // The agent's clock has not advanced since the entry was cached: ticks invalidate the cache.
            self.v10
                .table
                .record_hits(deferred.hits, self.state.time.now());
        }
    }

    /// Returns the counters that the fast path has deferred.
    pub(crate) fn deferred_counters(&self) -> impl Iterator<Item = DeferredCounters> + '_ {
        self.flow_cache.deferred_counters()
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
