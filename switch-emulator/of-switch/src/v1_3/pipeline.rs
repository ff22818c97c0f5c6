//! Pipeline by the specification (OpenFlow 1.3.4, section 5.1): tables, meters, instructions, the action set, groups.

use super::actions::{self, ActionSet, Left, Scope, SpecAction};
use super::flows::{Known, Removed};
use super::meters::Metered;
use super::{Memory, Observer, PipelineStep, Switch};
use crate::{MatchedEntries, PortSet, PortSets};
use openflow::v1_3::field;
use openflow::v1_3::port;
use openflow::v1_3::ParsedPacket;
use openflow::ErrorCode;

/// Longest frame that goes to the controller: a longer one, of many tags, would fit no message.
const LONGEST_BYTES: usize = 60_000;
/// Cookie of what no entry has sent to the controller.
const NO_COOKIE: u64 = u64::MAX;

/// Why a frame goes to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketInReason {
    /// By an entry without fields and of priority 0, the one for what nothing else matches.
    NoMatch = 0,
    /// By an action.
    Action = 1,
    /// A time to live is over.
    InvalidTtl = 2,
}

/// Effect of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecEffect {
    /// It leaves by these ports.
    Output {
        /// Those of the action from which frames may leave.
        ports: PortSet,
        /// The frame as it is then.
        frame: Vec<u8>,
    },
    /// It goes to the controller.
    PacketIn {
        /// Why.
        reason: PacketInReason,
        /// Number of the port that the frame came in on.
        in_port: u32,
        /// Body of the message.
        body: Vec<u8>,
    },
}

/// Result of the pipeline for a frame.
#[derive(Debug, Default)]
pub struct SpecRun {
    /// Where it went, in order.
    pub effects: Vec<SpecEffect>,
    /// The first table had no entry for it.
    pub missed: bool,
    /// The entries that it has used, if every search has found one, and it has not been changed and has passed no meter and
    /// no group: these count on their own.
    matched: Option<MatchedEntries>,
}

impl SpecRun {
    /// The entries that it has used and the ports that it leaves by, if it is sent once, unchanged, and nothing else happens.
    #[must_use]
    pub fn only_sent(&self) -> Option<(MatchedEntries, PortSet)> {
        match self.effects[..] {
            [SpecEffect::Output { ports, .. }] => Some((self.matched?, ports)),
            _ => None,
        }
    }
}

/// Context of actions.
#[derive(Clone, Copy, Debug)]
struct SpecContext {
    table: u8,
    cookie: u64,
    reason: PacketInReason,
    ports: PortSets,
    now_ns: u64,
}

impl SpecContext {
    /// Returns the context of the action set or of a group's bucket, which belong to no single entry (section 7.4.1).
    const fn of_no_entry(self) -> Self {
        Self {
            cookie: NO_COOKIE,
            ..self
        }
    }
}

impl<M: Memory> Switch<M> {
    /// Carries out a `FLOW_MOD`. Returns the entries that a DELETE removes.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.3.4 asks for.
    pub fn flow_mod(
        &mut self,
        message: &[u8],
        ports: PortSets,
        now_ns: u64,
    ) -> Result<Vec<Removed<M::Block>>, ErrorCode> {
        let known = Known {
            ports,
            limits: self.limits,
            groups: &self.groups,
            meters: &self.meters,
        };
        self.flows
            .flow_mod(&mut self.memory, message, known, now_ns)
    }

    /// Removes all entries whose timeouts are over.
    pub fn expire(&mut self, now_ns: u64) -> Vec<Removed<M::Block>> {
        self.flows.expire(&mut self.memory, now_ns)
    }

    /// Sends `frame` through the tables, as if it had come in on `in_port`.
    pub fn process(
        &mut self,
        frame: Vec<u8>,
        in_port: u32,
        ports: PortSets,
        now_ns: u64,
        observer: &mut impl Observer,
    ) -> SpecRun {
        let mut run = SpecRun {
            matched: Some(MatchedEntries::NONE),
            ..SpecRun::default()
        };
        let mut packet = ParsedPacket::new(frame, in_port);
        self.look_up(&mut packet, ports, now_ns, &mut run, observer);
        if run.effects.is_empty() {
            observer.step(PipelineStep::Drop(&packet));
        }
        run
    }

    /// Checks the actions of a `PACKET_OUT` and performs them on its frame.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.3.4 asks for.
    pub fn packet_out(
        &mut self,
        list: &[u8],
        frame: &[u8],
        in_port: u32,
        ports: PortSets,
        now_ns: u64,
        observer: &mut impl Observer,
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
                now_ns,
            };
            self.perform(&list, &mut packet, context, &mut run, observer);
        }
        Ok(run)
    }

    fn look_up(
        &mut self,
        packet: &mut ParsedPacket,
        ports: PortSets,
        now_ns: u64,
        run: &mut SpecRun,
        observer: &mut impl Observer,
    ) {
        let mut set = ActionSet::default();
        let mut table = 0;
        loop {
            let Some(position) = self.flows.find(table, packet, observer) else {
                run.missed = table == 0;
                run.matched = None;
                return;
            };
            run.matched = run.matched.and_then(|matched| matched.with(position));
            self.flows.use_entry(position, packet.frame.len(), now_ns);
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
                now_ns,
            };
            if let Some(id) = program.meter {
                observer.step(PipelineStep::Meter);
                run.matched = None;
                match self.meters.meter(id, packet.frame.len(), now_ns) {
                    Metered::Pass => {}
                    Metered::Drop => return,
                    Metered::Remark(raise) => remark(packet, raise),
                }
            }
            if self.perform(&program.apply, packet, context, run, observer) == Left::InvalidTtl {
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
                Some(next) if next < self.limits.tables => {
                    observer.step(PipelineStep::NextTable);
                    table = next;
                }
                _ => {
                    self.perform(&set.ordered(), packet, context.of_no_entry(), run, observer);
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
        observer: &mut impl Observer,
    ) -> Left {
        for action in list {
            match *action {
                SpecAction::Output { port, .. } => {
                    self.output(port, packet, context, run, observer);
                }
                SpecAction::Group(id) => {
                    observer.step(PipelineStep::Group);
                    run.matched = None;
                    let bytes = packet.frame.len();
                    let sets = self.groups.choose(id, bytes, context.ports, draw(packet));
                    let context = context.of_no_entry();
                    for set in sets {
                        self.perform(&set.ordered(), &mut packet.clone(), context, run, observer);
                    }
                }
                action => {
                    run.matched = None;
                    observer.step(PipelineStep::Rewrite(action, packet));
                    if actions::rewrite(action, packet) == Left::InvalidTtl {
                        to_controller(packet, PacketInReason::InvalidTtl, context, run, observer);
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
        observer: &mut impl Observer,
    ) {
        let ports = context.ports;
        let ingress = PortSet::of(packet.in_port);
        let ports_meant = match port {
            port::CONTROLLER => {
                return to_controller(packet, context.reason, context, run, observer)
            }
            port::TABLE => {
                let mut copy = ParsedPacket::new(packet.frame.clone(), packet.in_port);
                return self.look_up(&mut copy, ports, context.now_ns, run, observer);
            }
            port::IN_PORT => ingress,
            port::FLOOD | port::ALL => ports.all.minus(ingress),
            port => PortSet::of(port).minus(ingress),
        };
        let is_first = !run
            .effects
            .iter()
            .any(|effect| matches!(effect, SpecEffect::Output { .. }));
        observer.step(PipelineStep::Output { packet, is_first });
        run.effects.push(SpecEffect::Output {
            ports: ports_meant.intersection(ports.forwarding),
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
    observer: &mut impl Observer,
) {
    if packet.frame.len() > LONGEST_BYTES {
        return;
    }
    observer.step(PipelineStep::PacketIn(packet));
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
