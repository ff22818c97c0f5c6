//! Pipeline by the specification (OpenFlow 1.3.4, section 5.1): tables, meters, instructions, the action set, groups.

use super::super::meters::Metered;
use super::super::table::TABLES;
use super::actions::{self, ActionSet, Left, Scope, SpecAction};
use super::flows::Known;
use super::{ErrorCode, PortSets, Removed, SpecSwitch};
use crate::buffers::length_with_fcs;
use crate::cost::{at_length, Costs};
use crate::matched_entries::MatchedEntries;
use crate::port::{PortMask, PortNumber};
use crate::time::Instant;
use openflow::v1_3::field;
use openflow::v1_3::port;
use openflow::v1_3::ParsedPacket;

/// Longest frame that goes to the controller: a longer one, of many tags, would fit no message.
const LONGEST_BYTES: usize = 60_000;
/// Cookie of what no entry has sent to the controller.
const NO_COOKIE: u64 = u64::MAX;

/// Why a frame goes to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketInReason {
    /// By an entry without fields and of priority 0, the one for what nothing else matches.
    NoMatch = 0,
    Action = 1,
    InvalidTtl = 2,
}

/// Effect of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpecEffect {
    /// It leaves by these ports.
    Output { ports: PortMask, frame: Vec<u8> },
    /// It goes to the controller.
    PacketIn {
        reason: PacketInReason,
        in_port: u32,
        /// Body of the message.
        body: Vec<u8>,
    },
}

/// Result of the pipeline for a frame.
#[derive(Debug, Default)]
pub(crate) struct SpecRun {
    pub(crate) effects: Vec<SpecEffect>,
    pub(crate) cost_ps: i64,
    /// Entries compared with the frame, in all tables.
    pub(crate) examined: u64,
    /// The first table had no entry for it.
    pub(crate) missed: bool,
    /// The entries that it has used, if every search has found one, and it has not been changed and has passed no meter and
    /// no group: these count on their own.
    matched: Option<MatchedEntries>,
}

impl SpecRun {
    /// The entries that it has used and the ports that it leaves by, if it is sent once, unchanged, and nothing else happens.
    pub(crate) fn only_sent(&self) -> Option<(MatchedEntries, PortMask)> {
        match self.effects[..] {
            [SpecEffect::Output { ports, .. }] => Some((self.matched?, ports)),
            _ => None,
        }
    }
}

/// Context of actions.
#[derive(Clone, Copy, Debug)]
struct SpecContext<'a> {
    table: u8,
    cookie: u64,
    reason: PacketInReason,
    ports: PortSets,
    now: Instant,
    costs: &'a Costs,
}

impl SpecContext<'_> {
    /// Returns the context of the action set or of a group's bucket, which belong to no single entry (section 7.4.1).
    const fn of_no_entry(self) -> Self {
        Self {
            cookie: NO_COOKIE,
            ..self
        }
    }
}

impl SpecSwitch {
    /// Carries out a `FLOW_MOD`.
    pub(crate) fn flow_mod(
        &mut self,
        message: &[u8],
        ports: PortSets,
        now: Instant,
    ) -> super::FlowModOutcome {
        let known = Known {
            ports,
            groups: &self.groups,
            meters: &self.meters,
        };
        self.flows
            .flow_mod(&mut self.pool, message, known, now, &self.costs)
    }

    /// Removes all entries whose timeouts are over.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Removed> {
        self.flows.expire(&mut self.pool, now)
    }

    /// Sends `frame` through the tables, as if it had come in on `in_port`.
    pub(crate) fn process(
        &mut self,
        frame: Vec<u8>,
        in_port: u32,
        ports: PortSets,
        now: Instant,
        costs: &Costs,
    ) -> SpecRun {
        let mut run = SpecRun {
            matched: Some(MatchedEntries::NONE),
            ..SpecRun::default()
        };
        let mut packet = ParsedPacket::new(frame, in_port);
        self.look_up(&mut packet, ports, now, costs, &mut run);
        if run.effects.is_empty() {
            run.cost_ps += costs.drop_ps(length_with_fcs(packet.frame.len()));
        }
        run
    }

    /// Checks the actions of a `PACKET_OUT` and performs them on its frame.
    pub(crate) fn packet_out(
        &mut self,
        list: &[u8],
        frame: &[u8],
        in_port: u32,
        ports: PortSets,
        now: Instant,
        costs: &Costs,
    ) -> Result<SpecRun, ErrorCode> {
        let scope = Scope {
            ports,
            groups: Some(&self.groups),
            to_tables: true,
        };
        let list = actions::read(list, scope, None)?;
        let mut run = SpecRun::default();
        if !frame.is_empty() {
            let mut packet = ParsedPacket::new(frame.to_vec(), in_port);
            let context = SpecContext {
                table: 0,
                cookie: NO_COOKIE,
                reason: PacketInReason::Action,
                ports,
                now,
                costs,
            };
            self.perform(&list, &mut packet, context, &mut run);
        }
        Ok(run)
    }

    fn look_up(
        &mut self,
        packet: &mut ParsedPacket,
        ports: PortSets,
        now: Instant,
        costs: &Costs,
        run: &mut SpecRun,
    ) {
        let mut set = ActionSet::default();
        let mut table = 0;
        loop {
            let found = self.flows.find(table, packet, &self.costs);
            run.cost_ps += found.cost_ps;
            run.examined += found.examined;
            let Some(position) = found.position else {
                run.missed = table == 0;
                run.matched = None;
                return;
            };
            run.matched = run.matched.and_then(|matched| matched.with(position));
            self.flows.use_entry(position, packet.frame.len(), now);
            let entry = self.flows.entry(position);
            let program = entry.program.clone();
            let is_miss = entry.priority == 0 && entry.fields.wanted.is_empty();
            let context = SpecContext {
                table,
                cookie: entry.cookie,
                reason: if is_miss {
                    PacketInReason::NoMatch
                } else {
                    PacketInReason::Action
                },
                ports,
                now,
                costs,
            };
            if let Some(id) = program.meter {
                run.cost_ps += self.costs.meter_ps;
                run.matched = None;
                match self.meters.meter(id, packet.frame.len(), now) {
                    Metered::LoopIteration => {}
                    Metered::Drop => return,
                    Metered::Remark(raise) => remark(packet, raise),
                }
            }
            if self.perform(&program.apply, packet, context, run) == Left::InvalidTtl {
                return;
            }
            if program.clear {
                set.clear();
            }
            set.write(&program.write);
            if let Some((value, mask)) = program.metadata {
                packet.metadata = packet.metadata & !mask | value & mask;
            }
            match program.next_table {
                Some(next) if usize::from(next) < TABLES => {
                    run.cost_ps += self.costs.next_table_ps;
                    table = next;
                }
                _ => {
                    self.perform(&set.ordered(), packet, context.of_no_entry(), run);
                    return;
                }
            }
        }
    }

    fn perform(
        &mut self,
        list: &[SpecAction],
        packet: &mut ParsedPacket,
        context: SpecContext,
        run: &mut SpecRun,
    ) -> Left {
        for action in list {
            match *action {
                SpecAction::Output { port, .. } => self.output(port, packet, context, run),
                SpecAction::Group(id) => {
                    run.cost_ps += self.costs.group_ps;
                    run.matched = None;
                    let bytes = packet.frame.len();
                    let sets = self.groups.choose(id, bytes, context.ports, draw(packet));
                    let context = context.of_no_entry();
                    for set in sets {
                        self.perform(&set.ordered(), &mut packet.clone(), context, run);
                    }
                }
                action => {
                    run.matched = None;
                    run.cost_ps += rewriting_ps(action, packet, context.costs);
                    if actions::rewrite(action, packet) == Left::InvalidTtl {
                        to_controller(packet, PacketInReason::InvalidTtl, context, run);
                        return Left::InvalidTtl;
                    }
                }
            }
        }
        Left::Frame
    }

    fn output(
        &mut self,
        port: u32,
        packet: &mut ParsedPacket,
        context: SpecContext,
        run: &mut SpecRun,
    ) {
        let ports = context.ports;
        let only = |number: u32| match u8::try_from(number).ok().and_then(PortNumber::new) {
            Some(port) => PortMask::EMPTY.with(port),
            None => PortMask::EMPTY,
        };
        let ingress = only(packet.in_port);
        let ports_meant = match port {
            port::CONTROLLER => return to_controller(packet, context.reason, context, run),
            port::TABLE => {
                let mut copy = ParsedPacket::new(packet.frame.clone(), packet.in_port);
                return self.look_up(&mut copy, ports, context.now, context.costs, run);
            }
            port::IN_PORT => ingress,
            port::FLOOD | port::ALL => PortMask::from_bits(ports.all.bits() & !ingress.bits()),
            port => PortMask::from_bits(only(port).bits() & !ingress.bits()),
        };
        let first = !run
            .effects
            .iter()
            .any(|effect| matches!(effect, SpecEffect::Output { .. }));
        let costs = context.costs.action();
        let cost = if first {
            costs.output
        } else {
            costs.output_again
        };
        run.cost_ps += at_length(cost, length_with_fcs(packet.frame.len()));
        run.effects.push(SpecEffect::Output {
            ports: PortMask::from_bits(ports_meant.bits() & ports.forwarding.bits()),
            frame: packet.frame.clone(),
        });
    }
}

/// A frame goes to the controller: whole, since the switch keeps no copy.
fn to_controller(
    packet: &ParsedPacket,
    reason: PacketInReason,
    context: SpecContext,
    run: &mut SpecRun,
) {
    if packet.frame.len() > LONGEST_BYTES {
        return;
    }
    let length = length_with_fcs(packet.frame.len());
    run.cost_ps += at_length(context.costs.action().packet_in, length);
    let mut oxms = vec![0x80, 0, field::IN_PORT << 1, 4];
    oxms.extend(packet.in_port.to_be_bytes());
    if packet.metadata != 0 {
        oxms.extend([0x80, 0, field::METADATA << 1, 8]);
        oxms.extend(packet.metadata.to_be_bytes());
    }
    let mut body = u32::MAX.to_be_bytes().to_vec(); // not buffered
    body.extend((packet.frame.len() as u16).to_be_bytes());
    body.extend([reason as u8, context.table]);
    body.extend(context.cookie.to_be_bytes());
    super::flows::put_match(&mut body, &oxms);
    body.extend([0; 2]);
    body.extend(&packet.frame);
    run.effects.push(SpecEffect::PacketIn {
        reason,
        in_port: packet.in_port,
        body,
    });
}

/// Raises the drop precedence of an assured-forwarding DSCP (RFC 2597): its class stays, and it never exceeds 3.
fn remark(packet: &mut ParsedPacket, raise: u8) {
    let Some(dscp) = packet.get(field::IP_DSCP) else {
        return;
    };
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if dscp & 1 == 0 && (1..=4).contains(&class) && precedence > 0 {
        let raised = (precedence + u128::from(raise)).min(3);
        packet.set(field::IP_DSCP, class << 3 | raised << 1);
    }
}

/// Returns the same number for all frames of a flow.
fn draw(packet: &ParsedPacket) -> u32 {
    const FIELDS: [u8; 18] = [
        field::ETH_DST,
        field::ETH_SRC,
        field::ETH_TYPE,
        field::VLAN_VID,
        field::IP_PROTO,
        field::IPV4_SRC,
        field::IPV4_DST,
        field::IPV6_SRC,
        field::IPV6_DST,
        field::TCP_SRC,
        field::TCP_DST,
        field::UDP_SRC,
        field::UDP_DST,
        field::SCTP_SRC,
        field::SCTP_DST,
        field::ARP_SPA,
        field::ARP_TPA,
        field::MPLS_LABEL,
    ];
    // FNV-1a of the values, its bits mixed as in MurmurHash3 so that the lowest depend on all.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for number in FIELDS {
        for byte in packet.get(number).unwrap_or(0).to_be_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash >> 32) as u32
}

/// Cost of changing the frame: that of the like action of the firmware.
fn rewriting_ps(action: SpecAction, packet: &ParsedPacket, costs: &Costs) -> i64 {
    let length = length_with_fcs(packet.frame.len());
    let costs = costs.action();
    let cost = match action {
        SpecAction::PushVlan(_) | SpecAction::PushMpls(_) | SpecAction::PushPbb(_) => {
            costs.set_vlan
        }
        SpecAction::PopVlan if packet.get(field::VLAN_PCP).is_none() => costs.strip_vlan_untagged,
        SpecAction::PopVlan | SpecAction::PopMpls(_) | SpecAction::PopPbb => costs.strip_vlan,
        SpecAction::SetField { field, .. }
            if matches!(field, field::IP_DSCP..=field::ICMPV4_CODE)
                || matches!(field, field::IPV6_SRC..=field::IPV6_ND_TLL) =>
        {
            costs.set_checksummed
        }
        SpecAction::SetNwTtl(_) | SpecAction::DecNwTtl | SpecAction::CopyTtlIn => {
            costs.set_checksummed
        }
        _ => costs.set_dl,
    };
    at_length(cost, length)
}
