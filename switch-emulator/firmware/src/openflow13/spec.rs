//! The OpenFlow 1.3 switch of `quirks = "spec"`: that of the crate `of-switch`, of the board's capacity and at its costs.
//! All entries and meters share the board's block pool, so as many fit as on the board, if none were ever lost.

use super::groups::{AREA_BYTES, GROUPS};
use super::meters::{BANDS, METERS};
use super::multipart::{description, kind, PortCounters, Surroundings, ANY_PORT};
use super::table::{MAX_ENTRIES, TABLES};
use super::Flow13;
use crate::block_pool::{BlockPool, PoolBlock};
use crate::buffers::length_with_fcs;
use crate::cost::{at_length, Costs};
use crate::profile::{ActionCost, ActionCosts, FieldCost, OpenFlow13Costs};
use crate::time::{Duration, Instant};
use of_switch::v1_3::{
    in_parts, Limits, Memory, Observer, PipelineStep, SpecAction, SpecRun, Switch,
};
use of_switch::PortSets;
use openflow::bytes::{be16, be32};
use openflow::v1_3::flow_mod;
use openflow::v1_3::{error, field, kind as field_kind, ParsedPacket, Wanted};
use openflow::ErrorCode;

/// Head of a `MULTIPART_REQUEST`.
const REQUEST_BYTES: usize = 16;

/// Capacities of the board.
pub(super) const LIMITS: Limits = Limits {
    tables: TABLES as u8,
    entries: MAX_ENTRIES,
    groups: GROUPS,
    bucket_bytes: AREA_BYTES,
    meters: METERS,
    bands: BANDS,
};

impl Memory for BlockPool {
    type Block = PoolBlock;

    fn take(&mut self, bytes: usize) -> Option<PoolBlock> {
        self.take(bytes)
    }

    fn free(&mut self, block: PoolBlock) {
        self.free(block);
    }

    fn free_all(&mut self) {
        self.free_all();
    }
}

/// An entry that has gone.
pub(crate) type RemovedEntry = of_switch::v1_3::Removed<PoolBlock>;

/// An answer to a `MULTIPART_REQUEST`: bodies of its parts in order, behind the type.
#[derive(Debug)]
pub(crate) struct Multipart {
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) cost_ps: i64,
}

/// Result of the pipeline for a frame.
#[derive(Debug)]
pub(crate) struct PricedRun {
    pub(crate) run: SpecRun,
    pub(crate) cost_ps: i64,
    /// Entries compared with the frame, in all tables.
    pub(crate) examined: u64,
}

/// The switch.
#[derive(Debug)]
pub(crate) struct SpecSwitch {
    pub(crate) costs: OpenFlow13Costs,
    pub(crate) tables: Switch<BlockPool>,
}

impl SpecSwitch {
    pub(crate) fn new(costs: OpenFlow13Costs) -> Self {
        Self {
            costs,
            tables: Switch::new(LIMITS, BlockPool::new()),
        }
    }

    /// Entries in the order in which they were added, as values.
    pub(crate) fn values(&self) -> Vec<Flow13> {
        self.tables
            .entries()
            .map(|entry| Flow13 {
                head: entry.head.to_vec(),
                oxms: entry.oxms.clone(),
                instructions: entry.instructions.clone(),
                packets: entry.packets,
                bytes: entry.bytes as i64,
            })
            .collect()
    }

    /// Carries out a `FLOW_MOD`. Returns the entries that a DELETE removes, and the cost: that of the firmware's.
    pub(crate) fn flow_mod(
        &mut self,
        message: &[u8],
        ports: PortSets,
        now: Instant,
    ) -> (Result<Vec<RemovedEntry>, ErrorCode>, i64) {
        let costs = &self.costs;
        let entries = self.tables.count() as i64;
        let command = message.get(flow_mod::field::COMMAND);
        let mut cost_ps = match command {
            Some(3) => costs.flow_delete_ps + costs.delete_miss_ps * entries,
            Some(4) => costs.flow_delete_ps + costs.delete_strict_ps * entries,
            _ => costs.flow_add_ps + costs.replacement_scan_ps * entries,
        };
        let done = self.tables.flow_mod(message, ports, now.as_nanos());
        if let (Some(3 | 4), Ok(gone)) = (command, &done) {
            cost_ps += costs.delete_hit_ps * gone.len() as i64;
        }
        (done, cost_ps)
    }

    /// Sends `frame` through the tables, as if it had come in on `in_port`.
    pub(crate) fn process(
        &mut self,
        frame: Vec<u8>,
        in_port: u32,
        ports: PortSets,
        now: Instant,
        costs: &Costs,
    ) -> PricedRun {
        let mut bill = Bill::new(&self.costs, costs);
        let run = self
            .tables
            .process(frame, in_port, ports, now.as_nanos(), &mut bill);
        bill.of(run)
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
    ) -> Result<PricedRun, ErrorCode> {
        let mut bill = Bill::new(&self.costs, costs);
        let run = self
            .tables
            .packet_out(list, frame, in_port, ports, now.as_nanos(), &mut bill)?;
        Ok(bill.of(run))
    }

    /// Answers a whole `MULTIPART_REQUEST`.
    pub(crate) fn multipart(
        &self,
        message: &[u8],
        now: Instant,
        up_for: Duration,
        surroundings: &mut impl Surroundings,
    ) -> Result<Multipart, ErrorCode> {
        if message.len() < REQUEST_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let body = &message[REQUEST_BYTES..];
        let costs = &self.costs;
        let entries = self.tables.count() as i64;
        let port = || match body.len() {
            8.. => Ok(be32(body, 0)),
            _ => Err(error::BAD_LENGTH),
        };
        let (records, cost_ps) = match be16(message, 8) {
            kind::DESC => (vec![description()], costs.description_ps),
            kind::PORT_STATS => {
                let wanted = port()?;
                let ports = surroundings.port_counters();
                let chosen: Vec<Vec<u8>> = ports
                    .iter()
                    .filter(|port| wanted == ANY_PORT || u32::from(port.number) == wanted)
                    .map(|port| port_statistics(port, up_for))
                    .collect();
                if chosen.is_empty() && wanted != ANY_PORT {
                    return Err(error::BAD_REQUEST_PORT);
                }
                let chosen_ps = costs.port_statistics_port_ps * chosen.len() as i64;
                (chosen, costs.port_statistics_ps + chosen_ps)
            }
            kind::QUEUE => {
                // No port has queues.
                let wanted = port()?;
                let ports = surroundings.port_counters();
                if wanted != ANY_PORT && !ports.iter().any(|it| u32::from(it.number) == wanted) {
                    return Err(error::BAD_QUEUE_PORT);
                }
                (Vec::new(), costs.multipart_ps)
            }
            kind::PORT_DESC => (
                surroundings
                    .port_descriptions()
                    .into_iter()
                    .map(|port| port.bytes().to_vec())
                    .collect(),
                costs.port_description_ps,
            ),
            other => {
                let records = self.tables.multipart(message, now.as_nanos())?;
                let cost_ps = match other {
                    kind::FLOW => {
                        costs.multipart_ps + costs.flow_statistics_entry_ps * records.len() as i64
                    }
                    kind::AGGREGATE => costs.multipart_ps + costs.aggregate_entry_ps * entries,
                    kind::TABLE => {
                        costs.table_statistics_ps + costs.table_statistics_entry_ps * entries
                    }
                    kind::TABLE_FEATURES => costs.table_features_ps * TABLES as i64,
                    _ => costs.multipart_ps,
                };
                (records, cost_ps)
            }
        };
        Ok(Multipart {
            parts: in_parts(records),
            cost_ps,
        })
    }
}

fn port_statistics(port: &PortCounters, up_for: Duration) -> Vec<u8> {
    let mut record = u32::from(port.number).to_be_bytes().to_vec();
    record.extend([0; 4]);
    for count in [
        port.received,
        port.sent,
        port.received_bytes,
        port.sent_bytes,
        port.received_dropped,
    ] {
        record.extend(count.to_be_bytes());
    }
    record.extend([0; 7 * 8]);
    record.extend(up_for.whole_seconds().to_be_bytes());
    record.extend(((up_for.as_nanos() % 1_000_000_000) as u32).to_be_bytes());
    record
}

/// Sums up what the steps of the pipeline cost: as much as the like steps of the firmware.
struct Bill<'a> {
    costs: &'a OpenFlow13Costs,
    of_actions: &'a Costs,
    cost_ps: i64,
    examined: u64,
}

impl<'a> Bill<'a> {
    const fn new(costs: &'a OpenFlow13Costs, of_actions: &'a Costs) -> Self {
        Self {
            costs,
            of_actions,
            cost_ps: 0,
            examined: 0,
        }
    }

    const fn of(self, run: SpecRun) -> PricedRun {
        PricedRun {
            run,
            cost_ps: self.cost_ps,
            examined: self.examined,
        }
    }
}

impl Observer for Bill<'_> {
    #[inline]
    fn step(&mut self, step: PipelineStep) {
        let costs = self.costs;
        let at = |cost: ActionCost, packet: &ParsedPacket| {
            at_length(cost, length_with_fcs(packet.frame.len()))
        };
        let actions = self.of_actions.action();
        self.cost_ps += match step {
            PipelineStep::OtherTable => costs.other_table_ps,
            PipelineStep::Skipped => costs.skipped_ps,
            PipelineStep::Examined { after_hit } => {
                self.examined += 1;
                i64::from(after_hit) * costs.after_hit_ps
            }
            PipelineStep::Field { wanted, holds } => {
                let cost = field_cost(wanted, costs);
                if holds {
                    cost.passes_ps
                } else {
                    cost.fails_ps
                }
            }
            PipelineStep::Matched { fields: 0 } => costs.no_fields_ps,
            PipelineStep::Matched { .. } => costs.hit_ps,
            PipelineStep::NextTable => costs.next_table_ps,
            PipelineStep::Meter => costs.meter_ps,
            PipelineStep::Group => costs.group_ps,
            PipelineStep::Rewrite(action, packet) => {
                at(rewriting_cost(action, packet, actions), packet)
            }
            PipelineStep::Output { packet, is_first } if is_first => at(actions.output, packet),
            PipelineStep::Output { packet, .. } => at(actions.output_again, packet),
            PipelineStep::PacketIn(packet) => at(actions.packet_in, packet),
            PipelineStep::Drop(packet) => at(actions.drop, packet),
        };
    }
}

/// Returns the cost of testing a field. Fields that the firmware does not know cost as much as a similar one that it
/// knows.
fn field_cost(wanted: &Wanted, costs: &OpenFlow13Costs) -> FieldCost {
    let masked = field_kind(wanted.number).is_some_and(|kind| wanted.mask != kind.all());
    match wanted.number {
        field::IN_PORT | field::IN_PHY_PORT | field::METADATA => costs.in_port,
        field::ETH_DST | field::ETH_SRC | field::ARP_SHA | field::ARP_THA if masked => {
            costs.eth_masked
        }
        field::ETH_DST | field::ARP_THA | field::IPV6_ND_TLL => costs.eth_dst,
        field::ETH_SRC | field::ARP_SHA | field::IPV6_ND_SLL => costs.eth_src,
        field::ETH_TYPE | field::ARP_OP => costs.eth_type,
        field::VLAN_VID if masked => costs.vlan_vid_masked,
        field::VLAN_VID => costs.vlan_vid,
        field::VLAN_PCP => costs.vlan_pcp,
        field::IP_DSCP | field::IP_ECN => costs.ip_dscp,
        field::IP_PROTO => costs.ip_proto,
        field::TCP_SRC | field::TCP_DST | field::SCTP_SRC | field::SCTP_DST => costs.tcp_port,
        field::UDP_SRC
        | field::UDP_DST
        | field::ICMPV4_TYPE
        | field::ICMPV4_CODE
        | field::ICMPV6_TYPE
        | field::ICMPV6_CODE => costs.udp_port,
        field::MPLS_LABEL..=field::MPLS_BOS | field::PBB_ISID => costs.mpls,
        _ if masked => costs.ipv4_masked,
        field::IPV4_DST | field::ARP_TPA | field::IPV6_DST => costs.ipv4_dst,
        _ => costs.ipv4_src,
    }
}

/// Returns the cost of changing the frame: that of the like action of the firmware.
fn rewriting_cost(action: SpecAction, packet: &ParsedPacket, costs: &ActionCosts) -> ActionCost {
    match action {
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
    }
}
