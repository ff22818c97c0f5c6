//! Answers to `MULTIPART_REQUEST` (OpenFlow 1.3.4, section 7.3.5).

use super::flows::{put_age, put_match, Filter, SpecEntry};
use super::groups::SpecGroup;
use super::meters::SpecMeter;
use super::{Ids, Limits, Memory, Switch};
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;
use openflow::v1_3::meter::ALL as ALL_METERS;
use openflow::v1_3::{known, FieldKind};
use openflow::ErrorCode;

/// In requests: every group.
const ALL_GROUPS: u32 = 0xffff_fffc;
/// Length of a part of an answer, which then goes on in another one. Longer single records have a part of their own.
const PART_BYTES: usize = 2_048;
/// Head of a request.
const HEAD_BYTES: usize = 16;

/// The kinds of actions that this switch knows.
const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27];
/// The kinds of instructions.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];

impl<M: Memory> Switch<M> {
    /// Answers a whole `MULTIPART_REQUEST` about tables, groups and meters. Returns the records of the answer.
    ///
    /// # Errors
    ///
    /// Type and code of the error that OpenFlow 1.3.4 asks for. It knows nothing of requests of other types.
    pub fn multipart(&self, message: &[u8], now_ns: u64) -> Result<Vec<Vec<u8>>, ErrorCode> {
        if message.len() < HEAD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let body = &message[HEAD_BYTES..];
        let limits = self.limits;
        let id = || match body.len() {
            8.. => Ok(be32(body, 0)),
            _ => Err(error::BAD_LENGTH),
        };
        Ok(match be16(message, 8) {
            1 => {
                let filter = Filter::of_request(body, limits.tables)?;
                let chosen = self.flows.iter().filter(|entry| filter.means(entry));
                chosen.map(|entry| flow(entry, now_ns)).collect()
            }
            2 => {
                let filter = Filter::of_request(body, limits.tables)?;
                let chosen = self.flows.iter().filter(|entry| filter.means(entry));
                let (packets, bytes, count) = chosen
                    .fold((0, 0, 0_u32), |sum: (u64, u64, u32), it| {
                        (sum.0 + it.packets, sum.1 + it.bytes, sum.2 + 1)
                    });
                let mut sum = packets.to_be_bytes().to_vec();
                sum.extend(bytes.to_be_bytes());
                sum.extend(count.to_be_bytes());
                sum.extend([0; 4]);
                vec![sum]
            }
            3 => (0..limits.tables).map(|table| self.table(table)).collect(),
            6 => {
                let wanted = id()?;
                let groups = self.groups.iter();
                groups
                    .filter(|(id, _)| wanted == ALL_GROUPS || *id == wanted)
                    .map(|(id, group)| self.group(id, group, now_ns))
                    .collect()
            }
            7 => self
                .groups
                .iter()
                .map(|(id, group)| {
                    let mut record = Vec::new();
                    record.extend((8 + group.message.len() as u16).to_be_bytes());
                    record.extend([group.kind as u8, 0]);
                    record.extend(id.to_be_bytes());
                    record.extend(&group.message);
                    record
                })
                .collect(),
            8 => vec![group_features(limits)],
            9 => self.meters(id()?, now_ns)?,
            10 => self.meter_configurations(id()?)?,
            11 => vec![meter_features(limits)],
            // The features of tables are fixed.
            12 if !body.is_empty() => return Err(error::FIXED_TABLES),
            12 => (0..limits.tables)
                .map(|table| table_features(table, limits))
                .collect(),
            0xffff => return Err(error::BAD_EXPERIMENTER),
            _ => return Err(error::BAD_MULTIPART),
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

    fn group(&self, id: u32, group: &SpecGroup, now_ns: u64) -> Vec<u8> {
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
        put_age(&mut record, now_ns.saturating_sub(group.added_ns));
        for bucket in &group.buckets {
            record.extend(bucket.packets.to_be_bytes());
            record.extend(bucket.bytes.to_be_bytes());
        }
        record
    }

    fn chosen_meters(&self, wanted: u32) -> Result<Vec<&SpecMeter<M::Block>>, ErrorCode> {
        if wanted != ALL_METERS && !self.meters.has(wanted) {
            return Err(error::UNKNOWN_METER);
        }
        let list = self.meters.list().iter();
        Ok(list
            .filter(|meter| wanted == ALL_METERS || meter.id == wanted)
            .collect())
    }

    fn meters(&self, wanted: u32, now_ns: u64) -> Result<Vec<Vec<u8>>, ErrorCode> {
        let statistics = |meter: &SpecMeter<M::Block>| {
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
            put_age(&mut record, now_ns.saturating_sub(meter.added_ns));
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
        let configuration = |meter: &SpecMeter<M::Block>| {
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

/// Returns records in as few parts of an answer as their length allows; one at least.
#[must_use]
pub fn in_parts(records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
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

fn flow<B>(entry: &SpecEntry<B>, now_ns: u64) -> Vec<u8> {
    let mut record = vec![0, 0, entry.table, 0];
    put_age(&mut record, now_ns.saturating_sub(entry.installed_ns));
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

/// Weights and liveness, no groups of groups; the same actions in groups of every type.
fn group_features(limits: Limits) -> Vec<u8> {
    let actions = ACTIONS
        .iter()
        .filter(|kind| **kind != 22)
        .fold(0_u32, |bits, kind| bits | 1 << kind);
    let words = [
        [0x0f, 0x03],
        [limits.groups as u32; 2],
        [limits.groups as u32; 2],
        [actions; 2],
        [actions; 2],
    ];
    words
        .as_flattened()
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

fn meter_features(limits: Limits) -> Vec<u8> {
    let mut record = (limits.meters as u32).to_be_bytes().to_vec();
    record.extend(0x0000_0006_u32.to_be_bytes()); // DROP, DSCP_REMARK
    record.extend(0x0000_000f_u32.to_be_bytes()); // KBPS, PKTPS, BURST, STATS
    record.extend([limits.bands as u8, 0, 0, 0]);
    record
}

/// Returns the features of a table: the same for all, except that frames only go on to later ones.
fn table_features(table: u8, limits: Limits) -> Vec<u8> {
    let mut record = vec![0, 0, table, 0, 0, 0, 0, 0];
    let mut name = format!("table_{table}").into_bytes();
    name.resize(32, 0);
    record.extend(name);
    record.extend([0xff; 16]); // metadata that can be matched and written
    record.extend([0; 4]);
    record.extend((limits.entries as u32).to_be_bytes());
    let is_last = table + 1 == limits.tables;
    let instructions = INSTRUCTIONS.iter().filter(|kind| !is_last || **kind != 1);
    let instructions: Vec<u8> = instructions.flat_map(|kind| short(*kind)).collect();
    let next: Vec<u8> = (table + 1..limits.tables).collect();
    let actions: Vec<u8> = ACTIONS.iter().flat_map(|kind| short(*kind)).collect();
    let fields = |chosen: fn(FieldKind) -> bool, masks: bool| -> Vec<u8> {
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
