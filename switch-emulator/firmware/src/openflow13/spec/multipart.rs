//! Answers to `MULTIPART_REQUEST` (OpenFlow 1.3.4, section 7.3.5).

use super::super::meters::{BANDS, METERS};
use super::super::table::{MAX_ENTRIES, TABLES};
use super::super::{PortCounters, Surroundings};
use super::flows::{put_match, Filter, SpecEntry};
use super::groups::GROUPS;
use super::{ErrorCode, Ids, SpecSwitch};
use crate::time::{Duration, Instant};
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;
use openflow::v1_3::known;
use openflow::v1_3::meter::ALL as ALL_METERS;

/// In requests: every port, every group.
const ANY_PORT: u32 = u32::MAX;
const ALL_GROUPS: u32 = 0xffff_fffc;
/// Length of a part of an answer, which then goes on in another one. Longer single records have a part of their own.
const PART_BYTES: usize = 2_048;
/// Head of a request.
const HEAD_BYTES: usize = 16;

/// The kinds of actions that this switch knows.
const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27];
/// The kinds of instructions.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];

/// An answer: bodies of its parts in order, behind the type.
#[derive(Debug)]
pub(crate) struct Multipart {
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) cost_ps: i64,
}

impl SpecSwitch {
    /// Answers a whole `MULTIPART_REQUEST`.
    #[allow(clippy::too_many_lines)] // a few lines for each type
    pub(crate) fn multipart(
        &self,
        message: &[u8],
        now: Instant,
        up_for: Duration,
        surroundings: &mut impl Surroundings,
    ) -> Result<Multipart, ErrorCode> {
        if message.len() < HEAD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let body = &message[HEAD_BYTES..];
        let costs = &self.costs;
        let entries = self.flows.len() as i64;
        let id = || match body.len() {
            8.. => Ok(be32(body, 0)),
            _ => Err(error::BAD_LENGTH),
        };
        let (records, cost_ps) = match be16(message, 8) {
            0 => (vec![surroundings.description()], costs.description_ps),
            1 => {
                let filter = Filter::of_request(body)?;
                let told: Vec<Vec<u8>> = self
                    .flows
                    .iter()
                    .filter(|entry| filter.means(entry))
                    .map(|entry| flow(entry, now))
                    .collect();
                let told_ps = costs.flow_statistics_entry_ps * told.len() as i64;
                (told, costs.multipart_ps + told_ps)
            }
            2 => {
                let filter = Filter::of_request(body)?;
                let told: Vec<&SpecEntry> = self
                    .flows
                    .iter()
                    .filter(|entry| filter.means(entry))
                    .collect();
                let mut sum = Vec::new();
                sum.extend(told.iter().map(|it| it.packets).sum::<u64>().to_be_bytes());
                sum.extend(told.iter().map(|it| it.bytes).sum::<u64>().to_be_bytes());
                sum.extend((told.len() as u32).to_be_bytes());
                sum.extend([0; 4]);
                (
                    vec![sum],
                    costs.multipart_ps + costs.aggregate_entry_ps * entries,
                )
            }
            3 => (
                (0..TABLES as u8).map(|table| self.table(table)).collect(),
                costs.table_statistics_ps + costs.table_statistics_entry_ps * entries,
            ),
            4 => {
                let wanted = id()?;
                let ports = surroundings.port_counters();
                let told: Vec<Vec<u8>> = ports
                    .iter()
                    .filter(|port| wanted == ANY_PORT || u32::from(port.number) == wanted)
                    .map(|port| port_statistics(port, up_for))
                    .collect();
                if told.is_empty() && wanted != ANY_PORT {
                    return Err(error::BAD_REQUEST_PORT);
                }
                let told_ps = costs.port_statistics_port_ps * told.len() as i64;
                (told, costs.port_statistics_ps + told_ps)
            }
            5 => {
                // No port has queues.
                let wanted = id()?;
                let ports = surroundings.port_counters();
                if wanted != ANY_PORT && !ports.iter().any(|it| u32::from(it.number) == wanted) {
                    return Err(error::BAD_QUEUE_PORT);
                }
                (Vec::new(), costs.multipart_ps)
            }
            6 => {
                let wanted = id()?;
                let groups = self.groups.iter();
                let told = groups
                    .filter(|(id, _)| wanted == ALL_GROUPS || *id == wanted)
                    .map(|(id, _)| self.group(id, now));
                (told.flatten().collect(), costs.multipart_ps)
            }
            7 => {
                let description = |(id, group): (u32, &super::groups::SpecGroup)| {
                    let mut record = Vec::new();
                    record.extend((8 + group.message.len() as u16).to_be_bytes());
                    record.extend([group.kind as u8, 0]);
                    record.extend(id.to_be_bytes());
                    record.extend(&group.message);
                    record
                };
                (
                    self.groups.iter().map(description).collect(),
                    costs.multipart_ps,
                )
            }
            8 => (vec![group_features()], costs.multipart_ps),
            9 => (self.meters(id()?, now)?, costs.multipart_ps),
            10 => (self.meter_configurations(id()?)?, costs.multipart_ps),
            11 => (vec![meter_features()], costs.multipart_ps),
            // The features of tables are fixed.
            12 if !body.is_empty() => return Err(error::FIXED_TABLES),
            12 => (
                (0..TABLES as u8).map(table_features).collect(),
                costs.table_features_ps * TABLES as i64,
            ),
            13 => (
                surroundings
                    .port_descriptions()
                    .into_iter()
                    .map(|port| port.bytes().to_vec())
                    .collect(),
                costs.port_description_ps,
            ),
            0xffff => return Err(error::BAD_EXPERIMENTER),
            _ => return Err(error::BAD_MULTIPART),
        };
        Ok(Multipart {
            parts: in_parts(records),
            cost_ps,
        })
    }

    fn table(&self, table: u8) -> Vec<u8> {
        let counters = self.flows.tables[usize::from(table)];
        let mut record = vec![table, 0, 0, 0];
        record.extend((self.flows.count(table) as u32).to_be_bytes());
        record.extend(counters.lookups.to_be_bytes());
        record.extend(counters.matches.to_be_bytes());
        record
    }

    fn group(&self, id: u32, now: Instant) -> Option<Vec<u8>> {
        let (_, group) = self.groups.iter().find(|(held, _)| *held == id)?;
        let users = self
            .flows
            .iter()
            .filter(|entry| entry.program.sends_to_group(id))
            .count();
        let mut record = Vec::new();
        record.extend((40 + 16 * group.buckets.len() as u16).to_be_bytes());
        record.extend([0; 2]);
        record.extend(id.to_be_bytes());
        record.extend((users as u32).to_be_bytes());
        record.extend([0; 4]);
        record.extend(group.packets.to_be_bytes());
        record.extend(group.bytes.to_be_bytes());
        put_age(&mut record, now.saturating_since(group.added));
        for bucket in &group.buckets {
            record.extend(bucket.packets.to_be_bytes());
            record.extend(bucket.bytes.to_be_bytes());
        }
        Some(record)
    }

    fn chosen_meters(&self, wanted: u32) -> Result<Vec<&super::meters::SpecMeter>, ErrorCode> {
        if wanted != ALL_METERS && !self.meters.has(wanted) {
            return Err(error::UNKNOWN_METER);
        }
        let list = self.meters.list().iter();
        Ok(list
            .filter(|meter| wanted == ALL_METERS || meter.id == wanted)
            .collect())
    }

    fn meters(&self, wanted: u32, now: Instant) -> Result<Vec<Vec<u8>>, ErrorCode> {
        let statistics = |meter: &super::meters::SpecMeter| {
            let users = self
                .flows
                .iter()
                .filter(|entry| entry.program.meter == Some(meter.id))
                .count();
            let mut record = Vec::new();
            record.extend(meter.id.to_be_bytes());
            record.extend((40 + 16 * meter.bands.len() as u16).to_be_bytes());
            record.extend([0; 6]);
            record.extend((users as u32).to_be_bytes());
            record.extend(meter.packets.to_be_bytes());
            record.extend(meter.bytes.to_be_bytes());
            put_age(&mut record, now.saturating_since(meter.added));
            for band in &meter.bands {
                record.extend(band.packets.to_be_bytes());
                record.extend(band.bytes.to_be_bytes());
            }
            record
        };
        Ok(self
            .chosen_meters(wanted)?
            .into_iter()
            .map(statistics)
            .collect())
    }

    fn meter_configurations(&self, wanted: u32) -> Result<Vec<Vec<u8>>, ErrorCode> {
        let configuration = |meter: &super::meters::SpecMeter| {
            let mut record = Vec::new();
            record.extend((8 + 16 * meter.bands.len() as u16).to_be_bytes());
            record.extend(meter.flags.to_be_bytes());
            record.extend(meter.id.to_be_bytes());
            for band in &meter.bands {
                record.extend(band.kind.to_be_bytes());
                record.extend([0, 16]);
                record.extend(band.rate.to_be_bytes());
                record.extend(band.burst.to_be_bytes());
                record.extend([band.precedence, 0, 0, 0]);
            }
            record
        };
        let chosen = self.chosen_meters(wanted)?;
        Ok(chosen.into_iter().map(configuration).collect())
    }
}

/// Records in as few parts as their length allows; one at least.
fn in_parts(records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for record in records {
        let part = parts
            .last_mut()
            .filter(|part| part.is_empty() || HEAD_BYTES + part.len() + record.len() <= PART_BYTES);
        match part {
            Some(part) => part.extend(record),
            None => parts.push(record),
        }
    }
    parts
}

fn put_age(record: &mut Vec<u8>, age: Duration) {
    record.extend(age.whole_seconds().to_be_bytes());
    record.extend(((age.as_nanos() % 1_000_000_000) as u32).to_be_bytes());
}

fn flow(entry: &SpecEntry, now: Instant) -> Vec<u8> {
    let mut record = vec![0, 0, entry.table, 0];
    put_age(&mut record, now.saturating_since(entry.installed));
    for number in [
        entry.priority,
        entry.idle_timeout_s,
        entry.hard_timeout_s,
        entry.flags,
    ] {
        record.extend(number.to_be_bytes());
    }
    record.extend([0; 4]);
    record.extend(entry.cookie.to_be_bytes());
    record.extend(entry.packets.to_be_bytes());
    record.extend(entry.bytes.to_be_bytes());
    put_match(&mut record, &entry.oxms);
    record.extend(&entry.instructions);
    let length = record.len() as u16;
    record[..2].copy_from_slice(&length.to_be_bytes());
    record
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
    put_age(&mut record, up_for);
    record
}

/// Weights and liveness, no groups of groups; the same actions in groups of every type.
fn group_features() -> Vec<u8> {
    let actions = ACTIONS
        .iter()
        .filter(|kind| **kind != 22)
        .fold(0_u32, |bits, kind| bits | 1 << kind);
    let words = [
        [0x0f, 0x03],
        [GROUPS as u32; 2],
        [GROUPS as u32; 2],
        [actions; 2],
        [actions; 2],
    ];
    words
        .as_flattened()
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

fn meter_features() -> Vec<u8> {
    let mut record = (METERS as u32).to_be_bytes().to_vec();
    record.extend(0x0000_0006_u32.to_be_bytes()); // DROP, DSCP_REMARK
    record.extend(0x0000_000f_u32.to_be_bytes()); // KBPS, PKTPS, BURST, STATS
    record.extend([BANDS as u8, 0, 0, 0]);
    record
}

/// Returns the features of a table: the same for all, except that frames only go on to later ones.
fn table_features(table: u8) -> Vec<u8> {
    let mut record = vec![0, 0, table, 0, 0, 0, 0, 0];
    let mut name = format!("table_{table}").into_bytes();
    name.resize(32, 0);
    record.extend(name);
    record.extend([0xff; 16]); // metadata that can be matched and written
    record.extend([0; 4]);
    record.extend((MAX_ENTRIES as u32).to_be_bytes());
    let is_last = usize::from(table) + 1 == TABLES;
    let instructions = INSTRUCTIONS.iter().filter(|kind| !is_last || **kind != 1);
    let instructions: Vec<u8> = instructions.flat_map(|kind| short(*kind)).collect();
    let next: Vec<u8> = (table + 1..TABLES as u8).collect();
    let actions: Vec<u8> = ACTIONS.iter().flat_map(|kind| short(*kind)).collect();
    let fields = |chosen: fn(openflow::v1_3::FieldKind) -> bool, masks: bool| -> Vec<u8> {
        known()
            .filter(|(_, kind)| chosen(*kind))
            .flat_map(|(number, kind)| {
                let masked = masks && kind.maskable;
                let bytes = kind.bytes << u8::from(masked);
                [0x80, 0, number << 1 | u8::from(masked), bytes as u8]
            })
            .collect()
    };
    let set = fields(|kind| kind.settable, false);
    // Each property, and the same for an entry of table-miss behind it.
    for (kind, content) in [
        (0, &instructions),
        (2, &next),
        (4, &actions),
        (6, &actions),
        (8, &fields(|_| true, true)),
        (10, &fields(|_| true, false)),
        (12, &set),
        (14, &set),
    ] {
        let length = 4 + content.len();
        let end = record.len() + length.next_multiple_of(8);
        record.extend(u16::to_be_bytes(kind));
        record.extend((length as u16).to_be_bytes());
        record.extend(content);
        record.resize(end, 0);
    }
    let length = record.len() as u16;
    record[..2].copy_from_slice(&length.to_be_bytes());
    record
}

/// An instruction or action of which only the type is told.
fn short(kind: u16) -> [u8; 4] {
    let [high, low] = kind.to_be_bytes();
    [high, low, 0, 4]
}
