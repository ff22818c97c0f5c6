//! Forwarding of frames by the table of 1.0: lookup, actions, `PACKET_IN`, `PACKET_OUT`.

use super::super::context::AgentContext;
use super::super::flow_cache::{CachedAction, HitCounting};
use super::super::ports::port_config;
use super::super::state::AgentState;
use super::Firmware10;
use crate::actions::{tail_tag, Actions, Destination, Rewriter};
use crate::buffers::length_with_fcs;
use crate::cost::FrameTime;
use crate::event::Event;
use crate::loop_iteration::LoopIteration;
use crate::packet::Key;
use crate::port::{PortMask, PortNumber};
use crate::quirks::Quirk;
use crate::time::Instant;
use of_switch::MatchedEntries;
use openflow::bytes::be16;
use openflow::message;
use openflow::v1_0::{port, Match};
use openflow::wire::{HEADER_BYTES, PACKET_OUT_BYTES, VERSION_1_0};

/// Why a frame goes to the controller.
const NO_MATCH: u8 = 0;
const ACTION: u8 = 1;

/// Decision of the table lookup on a frame.
pub(super) enum Decision {
    Drop,
    Miss,
    Use {
        /// Entry with the actions; `None` for actions of a message.
        entry: Option<usize>,
        actions: Actions,
    },
}

impl Firmware10 {
    /// Looks a frame up. Returns the decision, and the cost of lookup and actions.
    pub(super) fn decide(
        &mut self,
        cx: &mut AgentContext,
        key: &Key,
        frame: &[u8],
    ) -> (Decision, i64) {
        let length = length_with_fcs(frame.len());
        if self.table.is_underflowed() {
            self.table.count_lookup();
            return drop_unseen(cx, length);
        }
        if self.drops_fragment(frame) {
            return drop_unseen(cx, length);
        }
        let now = cx.state.time.now();
        let found = if cx.state.has(Quirk::LimitedMatching) {
            self.table.lookup(key, frame.len(), now)
        } else {
            let fields = Match::of_frame(frame, key.in_port());
            self.table.spec_lookup(&fields, frame.len(), now)
        };
        cx.iteration.out.counters.searches += 1;
        cx.iteration.out.counters.entries_examined += found.examined as u64;
        if let Some(index) = found.index {
            let actions = self.table.actions(index);
            let cost_ps = found.cost_ps + cx.state.costs.actions_ps(&actions, key.tagged, length);
            (
                Decision::Use {
                    entry: Some(index),
                    actions,
                },
                cost_ps,
            )
        } else {
            cx.iteration.out.counters.missed += 1;
            if !key.matchable && cx.state.has(Quirk::LimitedMatching) {
                self.warn_unmatchable(cx.iteration, key);
            }
            (
                Decision::Miss,
                found.cost_ps + cx.state.costs.miss_ps(length),
            )
        }
    }

    /// Emits an event, once, if this frame cannot match any installed entry.
    fn warn_unmatchable(&mut self, iteration: &mut LoopIteration, key: &Key) {
        if !self.warned_unmatchable && self.table.count() > 0 {
            self.warned_unmatchable = true;
            let ethertype = key.ethertype();
            iteration.event(Event::FrameUnmatchable { ethertype });
        }
    }

    pub(super) fn carry_out(
        &mut self,
        cx: &mut AgentContext,
        at: Instant,
        decision: &Decision,
        key: &Key,
        mut data: Vec<u8>,
    ) {
        let (in_port, tagged) = (key.in_port(), key.tagged);
        match decision {
            Decision::Drop => {}
            Decision::Miss => {
                let silent = u8::try_from(in_port)
                    .ok()
                    .and_then(PortNumber::new)
                    .is_some_and(|port| {
                        cx.state
                            .ports
                            .without(PortMask::EMPTY.with(port), port_config::NO_PACKET_IN)
                            .is_empty()
                    });
                if !silent {
                    packet_in(cx, at, NO_MATCH, in_port, &data);
                }
            }
            Decision::Use { entry, actions } => {
                let spec = !cx.state.has(Quirk::ActionsByFirstTag);
                let all = if cx.state.has(Quirk::FloodIsAll) {
                    cx.state.config.flooded
                } else {
                    cx.state.config.openflow_ports
                };
                let flooded = cx.state.ports.without(all, port_config::NO_FLOOD);
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
                            packet_in(cx, at, ACTION, in_port, &rewriter.frame[..kept]);
                        }
                        Some(Destination::Ports(ports)) => {
                            let closed = port_config::DOWN | port_config::NO_FORWARD;
                            let ports = cx.state.ports.without(ports, closed);
                            if rest.len() == 0 {
                                return cx.iteration.out.send(at, ports, data);
                            }
                            cx.iteration.out.send_copy(at, ports, rewriter.frame);
                        }
                        // Only a message may send to the table: an entry could send to itself.
                        Some(Destination::Table) if entry.is_some() => continue,
                        Some(Destination::Table) => {
                            let copy = cx.iteration.out.pool.copy_unpadded(rewriter.frame);
                            let key = parse_key(cx.state, &copy, in_port);
                            self.look_up_and_carry_out(cx, at, copy, &key);
                        }
                    }
                    sent = true;
                }
                cx.iteration.out.counters.dropped_flow += u64::from(!sent);
            }
        }
        cx.iteration.out.pool.recycle(data);
    }

    /// Forwards a frame by the table, as if it had arrived on the port of its `key`.
    pub(super) fn look_up_and_carry_out(
        &mut self,
        cx: &mut AgentContext,
        at: Instant,
        data: Vec<u8>,
        key: &Key,
    ) {
        let (decision, cost_ps) = if cx.state.forwards() {
            self.decide(cx, key, &data)
        } else {
            drop_unseen(cx, length_with_fcs(data.len()))
        };
        cx.iteration.cost_ps += cost_ps;
        let overwrites = cx.state.has(Quirk::InsertedTagOverwrites);
        if let (Decision::Use { actions, .. }, true) = (&decision, overwrites) {
            let spec = !cx.state.has(Quirk::ActionsByFirstTag);
            cx.state.rx.pushed_out = pushed_out(actions, &data, key, spec);
        }
        self.carry_out(cx, at, &decision, key, data);
    }

    /// Applies actions to a frame.
    pub(super) fn perform_actions(
        &mut self,
        cx: &mut AgentContext,
        at: Instant,
        actions: &Actions,
        data: Vec<u8>,
        in_port: u16,
    ) {
        let key = parse_key(cx.state, &data, in_port);
        let decision = Decision::Use {
            entry: None,
            actions: *actions,
        };
        self.carry_out(cx, at, &decision, &key, data);
    }

    /// Sends the frame of a `PACKET_OUT`. Its actions are not performed: only the port of the last one counts.
    pub(super) fn packet_out(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize) {
        let in_port = be16(bytes, HEADER_BYTES + 4);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, HEADER_BYTES + 6));
        let port = be16(bytes, data_at - 4);
        cx.iteration.cost_ps += cx.state.costs.control().packet_out_ps;
        let Some(data) = bytes.get(data_at..length) else {
            return; // the actions would reach beyond the message
        };
        cx.charge_packet_out(data);
        let at = cx.iteration.reached();
        let mask = match port {
            port::TABLE => {
                // The frame is not padded: the lookup reads what follows it in place of missing bytes.
                let key = parse_key(cx.state, &bytes[data_at..], in_port);
                let data = cx.iteration.out.pool.copy_unpadded(data);
                return self.look_up_and_carry_out(cx, at, data, &key);
            }
            port::FLOOD => {
                // The firmware subtracts the ingress port's bit, whether it is set or not.
                let ingress = match in_port.wrapping_sub(1) % 256 {
                    shift @ 0..32 => 1_u32 << shift,
                    _ => 0,
                };
                u32::from(cx.state.config.flooded.bits()).wrapping_sub(ingress) as u8
            }
            port => tail_tag((port.wrapping_sub(1) % 256) + 1),
        };
        let data = cx.iteration.out.pool.copy(data);
        cx.iteration.out.send_tagged(at, mask, data);
    }
}

/// Drops a frame without looking it up. Returns the decision and its cost.
fn drop_unseen(cx: &mut AgentContext, length: usize) -> (Decision, i64) {
    cx.iteration.out.counters.dropped_policy += 1;
    (Decision::Drop, cx.state.costs.drop_ps(length))
}

/// Returns the action to cache, or `None` unless the decision is to output the unchanged frame to one port.
pub(super) fn cacheable_action(
    state: &AgentState,
    decision: &Decision,
    in_port: u16,
    time: FrameTime,
    examined: u64,
) -> Option<CachedAction> {
    let Decision::Use { entry, actions } = *decision else {
        return None;
    };
    let port = actions.only_output().filter(|port| *port != in_port)?;
    let ports = state.ports.without(
        PortMask::from_bits(tail_tag(port)),
        port_config::DOWN | port_config::NO_FORWARD,
    );
    let counting = if state.has(Quirk::LimitedMatching) {
        HitCounting::Deferred
    } else {
        HitCounting::Immediate
    };
    let matched = MatchedEntries::NONE.with(entry?)?;
    CachedAction::new(counting, matched, examined, ports, time)
}

/// Returns what the firmware reads from a frame.
pub(super) fn parse_key(state: &AgentState, frame: &[u8], in_port: u16) -> Key {
    let reads_arp = !state.has(Quirk::ArpFieldsUnmatched);
    Key::parse(frame, in_port, reads_arp)
}

/// Sends a `PACKET_IN`, if the controller can take it.
fn packet_in(cx: &mut AgentContext, at: Instant, reason: u8, in_port: u16, frame: &[u8]) {
    if !cx.state.takes_packet_ins(VERSION_1_0) {
        return;
    }
    let message = cx
        .state
        .reply(message::PACKET_IN, [0; 4])
        .u32(u32::MAX) // not buffered
        .u16(frame.len() as u16)
        .u16(in_port)
        .u8(reason)
        .u8(0)
        .bytes(frame);
    cx.packet_in(at, message);
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
