//! Pipeline of OpenFlow 1.3: tables, meters, instructions, actions, groups (quirks 150 to 158).

use super::header::Header;
use super::instructions::Action13;
use super::rewrite::Rewriter13;
use super::table::TABLES;
use super::{Switch13, TableClock};
use crate::buffers::length_with_fcs;
use crate::cost::{at_length, Costs};
use crate::event::Hang;
use crate::port::PortMask;
use of_switch::v1_3::Metered;
use of_switch::MatchedEntries;
use openflow::v1_3::field;
use openflow::v1_3::port;

/// Effect of a frame, in order.
#[derive(Debug)]
pub(crate) struct Effect13 {
    pub(crate) kind: EffectKind,
    /// The frame as it was then, or `None` if it was the same as in the end.
    pub(crate) frame: Option<Vec<u8>>,
}

/// Kind of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectKind {
    /// It leaves with this tail tag.
    Output(u8),
    /// Its first bytes go to the controller.
    PacketIn {
        in_port: u32,
        table: u8,
        cookie: u64,
        max_bytes: u16,
    },
}

/// Result of the pipeline for a frame.
#[derive(Debug, Default)]
pub(crate) struct PipelineRun {
    pub(crate) effects: Vec<Effect13>,
    pub(crate) cost_ps: i64,
    /// Entries compared with the frame, in all tables.
    pub(crate) examined: u64,
    /// The board stops for good after these effects.
    pub(crate) hang: Option<Hang>,
    /// The first table had no entry for it.
    pub(crate) missed: bool,
    /// The bytes behind the frame's original end when the frame was at its longest.
    pub(crate) overrun: Vec<u8>,
    /// The entries that it has used, if these do nothing but send it on and every search has found one.
    matched: Option<MatchedEntries>,
}

impl PipelineRun {
    /// The entries that it has used and the ports that it leaves by, if it is sent once, unchanged, and nothing else happens.
    pub(crate) fn only_sent(&self) -> Option<(MatchedEntries, PortMask)> {
        let [Effect13 {
            kind: EffectKind::Output(tag),
            ..
        }] = self.effects[..]
        else {
            return None;
        };
        // Other bits of a tag are not for ports.
        let ports = Some(PortMask::from_bits(tag)).filter(|ports| ports.bits() == tag);
        self.matched.filter(|_| self.hang.is_none()).zip(ports)
    }
}

/// Bit of a tail tag that sends a frame to the port with this number (quirk 157).
pub(crate) const fn tail_bit(port: u32) -> u8 {
    match port.wrapping_sub(1) % 256 {
        shift @ 0..8 => 1 << shift,
        _ => 0,
    }
}

/// How a list of actions goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListProgress {
    On,
    Hangs,
}

/// Context of an entry's actions.
struct Context13<'a> {
    table: u8,
    cookie: u64,
    /// Ports that FLOOD and ALL reach, before the ingress port is taken off.
    flooded: u8,
    costs: &'a Costs,
    /// Length of the frame as it was received.
    received_bytes: usize,
}

impl Switch13 {
    /// Sends `frame` through the tables, as if it had come in on `in_port`. `flooded` are the ports that are not native.
    pub(crate) fn process(
        &mut self,
        frame: &mut Vec<u8>,
        in_port: u32,
        flooded: u8,
        clock: TableClock,
        costs: &Costs,
    ) -> PipelineRun {
        let mut run = PipelineRun {
            matched: Some(MatchedEntries::NONE),
            ..PipelineRun::default()
        };
        let mut header = Header::parse(frame, in_port);
        let received_bytes = frame.len();
        let mut table = 0;
        loop {
            let found = self
                .entries
                .find(usize::from(table), &header, frame, &self.costs);
            run.cost_ps += found.cost_ps;
            run.examined += found.examined;
            let Some(position) = found.position else {
                run.missed = table == 0;
                run.matched = None;
                break;
            };
            self.entries.use_entry(position, frame.len(), clock.now_s);
            let entry = self.entries.entry(position);
            let program = &entry.program;
            let matched = run.matched.filter(|_| program.only_sends);
            run.matched = matched.and_then(|matched| matched.with(position));
            if program.hangs {
                run.hang = Some(Hang::Instruction);
                break;
            }
            if let Some(id) = program.meter {
                run.cost_ps += self.costs.meter_ps;
                match self
                    .meters
                    .meter(&mut self.pool, id, frame.len(), clock.now_ms)
                {
                    Metered::Pass => {}
                    Metered::Drop => break,
                    Metered::Remark(precedence) => {
                        freeze(&mut run, frame);
                        remark(frame, &header, precedence);
                    }
                }
            }
            let context = Context13 {
                table,
                cookie: entry.cookie(),
                flooded,
                costs,
                received_bytes,
            };
            let mut rewriter = Rewriter13 {
                frame,
                header: &mut header,
                checksums_due: false,
            };
            for action in &program.actions {
                if self.perform(*action, &mut rewriter, &context, &mut run) == ListProgress::Hangs {
                    run.hang = Some(Hang::Action);
                    return run;
                }
            }
            settle(&mut rewriter, &mut run, &context);
            match program.next_table {
                Some(next) if next > table && usize::from(next) < TABLES => {
                    run.cost_ps += self.costs.next_table_ps;
                    table = next;
                }
                _ => break,
            }
        }
        if run.effects.is_empty() {
            run.cost_ps += costs.drop_ps(length_with_fcs(received_bytes));
        }
        run
    }

    fn perform(
        &self,
        action: Action13,
        rewriter: &mut Rewriter13,
        context: &Context13,
        run: &mut PipelineRun,
    ) -> ListProgress {
        match action {
            Action13::Output { port, max_bytes } => output(port, max_bytes, rewriter, context, run),
            Action13::Group(id) => {
                run.cost_ps += self.costs.group_ps;
                for action in self.groups.actions(id).unwrap_or_default() {
                    match action {
                        Action13::Output { port, max_bytes } => {
                            output(port, max_bytes, rewriter, context, run);
                        }
                        Action13::Hang => return ListProgress::Hangs,
                        _ => {} // skipped (quirk 167)
                    }
                }
            }
            Action13::Hang => return ListProgress::Hangs,
            _ => {
                freeze(run, rewriter.frame);
                run.cost_ps += rewriting_ps(action, rewriter, context.costs);
                rewrite(action, rewriter);
                let beyond = rewriter.frame.get(context.received_bytes..).unwrap_or(&[]);
                if beyond.len() > run.overrun.len() {
                    run.overrun = beyond.to_vec();
                }
            }
        }
        ListProgress::On
    }
}

fn rewrite(action: Action13, rewriter: &mut Rewriter13) {
    match action {
        Action13::PushVlan(eth_type) => rewriter.push_vlan(eth_type),
        Action13::PopVlan => rewriter.pop_vlan(),
        Action13::PushMpls(eth_type) => rewriter.push_mpls(eth_type),
        Action13::PopMpls => rewriter.pop_mpls(),
        Action13::SetMplsTtl(ttl) => rewriter.set_mpls_ttl(ttl),
        Action13::SetField { field, value } => rewriter.set_field(field, value),
        Action13::Output { .. } | Action13::Group(_) | Action13::Hang => {}
    }
}

/// Cost of changing the frame, without the checksums.
fn rewriting_ps(action: Action13, rewriter: &Rewriter13, costs: &Costs) -> i64 {
    let length = length_with_fcs(rewriter.frame.len());
    let cost = match action {
        Action13::PushVlan(_) | Action13::PushMpls(_) => costs.action().set_vlan,
        Action13::PopVlan if !rewriter.header.tagged => costs.action().strip_vlan_untagged,
        Action13::PopVlan | Action13::PopMpls => costs.action().strip_vlan,
        Action13::SetField { field, .. }
            if (field::IP_DSCP..=field::ICMPV4_CODE).contains(&field) =>
        {
            return 0; // in the checksums
        }
        _ => costs.action().set_dl,
    };
    at_length(cost, length)
}

/// Computes the checksums that are due.
fn settle(rewriter: &mut Rewriter13, run: &mut PipelineRun, context: &Context13) {
    if rewriter.checksums_due {
        freeze(run, rewriter.frame);
        let length = length_with_fcs(rewriter.frame.len());
        run.cost_ps += at_length(context.costs.action().set_checksummed, length);
        rewriter.settle_checksums();
    }
}

/// The frame is about to change: earlier effects keep a copy of it as it is.
fn freeze(run: &mut PipelineRun, frame: &[u8]) {
    for effect in &mut run.effects {
        effect.frame.get_or_insert_with(|| frame.to_vec());
    }
}

fn output(
    port: u32,
    max_bytes: u16,
    rewriter: &mut Rewriter13,
    context: &Context13,
    run: &mut PipelineRun,
) {
    settle(rewriter, run, context);
    let in_port = rewriter.header.in_port;
    let length = length_with_fcs(rewriter.frame.len());
    let tag = match port {
        port::IN_PORT => tail_bit(in_port),
        // The ingress port's bit is subtracted, whether it is set or not.
        port::FLOOD | port::ALL => context.flooded.wrapping_sub(tail_bit(in_port)),
        port::CONTROLLER => {
            let sent = rewriter.frame.len().min(max_bytes.into());
            let cost = context.costs.action().packet_in;
            run.cost_ps += at_length(cost, length_with_fcs(sent));
            return run.effects.push(Effect13 {
                kind: EffectKind::PacketIn {
                    in_port,
                    table: context.table,
                    cookie: context.cookie,
                    max_bytes,
                },
                frame: None,
            });
        }
        port::FIRST_RESERVED.. => return,
        port if port == in_port => return,
        port => tail_bit(port),
    };
    let first = !run
        .effects
        .iter()
        .any(|effect| matches!(effect.kind, EffectKind::Output(_)));
    let costs = context.costs.action();
    let cost = if first {
        costs.output
    } else {
        costs.output_again
    };
    run.cost_ps += at_length(cost, length);
    run.effects.push(Effect13 {
        kind: EffectKind::Output(tag),
        frame: None,
    });
}

/// Raises the drop precedence of an assured-forwarding DSCP. The IP checksum stays as it was (quirk 176).
fn remark(frame: &mut [u8], header: &Header, raise: u8) {
    if header.eth_type != openflow::ethernet::IPV4 {
        return;
    }
    let Some(byte) = frame.get_mut(header.payload + 1) else {
        return;
    };
    let precedence = *byte >> 2 & 7;
    if matches!(precedence, 2 | 4 | 6) {
        let raised = precedence.wrapping_add(raise.wrapping_mul(2)).min(6);
        *byte = *byte & !(7 << 2) | raised << 2;
    }
}
