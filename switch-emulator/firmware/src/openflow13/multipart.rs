//! Answers to `MULTIPART_REQUEST` (quirks 97, 99 to 117).

use super::groups::GroupView;
use super::meters::{self, Meter, METERS};
use super::replies::{Reply, REPLY_BYTES};
use super::table::{padded, EntryView13, MAX_ENTRIES, TABLES};
use super::{Switch13, TableClock};
use crate::event::Hang;
use openflow::bytes::{be16, be32};
use openflow::v1_3::field as oxm;
use openflow::v1_3::flow_mod::field;
use openflow::v1_3::{error, meter};

/// Entries of a part of a reply to `FLOW`.
pub(super) const FLOW_ENTRIES: usize = 15;
/// Head of a reply.
const REPLY_HEAD_BYTES: usize = 16;
/// Flag of a reply: more parts follow.
const MORE: u16 = 1;
/// Any port, in a request for port statistics.
pub(super) const ANY_PORT: u32 = u32::MAX;
const BAD_PORT: (u16, u16) = (1, 11);

/// Types of requests.
pub(super) mod kind {
    pub(in super::super) const DESC: u16 = 0;
    pub(in super::super) const FLOW: u16 = 1;
    pub(in super::super) const AGGREGATE: u16 = 2;
    pub(in super::super) const TABLE: u16 = 3;
    pub(in super::super) const PORT_STATS: u16 = 4;
    pub(in super::super) const QUEUE: u16 = 5;
    pub(in super::super) const GROUP: u16 = 6;
    pub(in super::super) const GROUP_DESC: u16 = 7;
    pub(in super::super) const GROUP_FEATURES: u16 = 8;
    pub(in super::super) const METER: u16 = 9;
    pub(in super::super) const METER_CONFIG: u16 = 10;
    pub(in super::super) const METER_FEATURES: u16 = 11;
    pub(in super::super) const TABLE_FEATURES: u16 = 12;
    pub(in super::super) const PORT_DESC: u16 = 13;
}

/// Board state that a request reads beside tables, groups and meters.
pub(crate) trait Surroundings {
    /// Descriptions of the OpenFlow ports, ascending; reads the state of the links anew.
    fn port_descriptions(&mut self) -> Vec<PortDescription>;
    /// Counters of the ports that are not native, ascending.
    fn port_counters(&self) -> Vec<PortCounters>;
}

/// Returns the body of the answer to `DESC`, in both versions.
pub(crate) fn description() -> Vec<u8> {
    let mut body = Vec::new();
    for (text, bytes) in [
        ("Northbound Networks", 256),
        ("Zodiac-FX Rev.A", 256),
        ("0.84", 256),
        ("none", 32),
        ("World's smallest OpenFlow switch!", 256),
    ] {
        let end = body.len() + bytes;
        body.extend(text.as_bytes());
        body.resize(end, 0);
    }
    body
}

/// Description of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortDescription {
    pub(crate) number: u8,
    pub(crate) address: [u8; 6],
    pub(crate) up: bool,
    /// Configuration set by `PORT_MOD`; the firmware has none.
    pub(crate) config: u32,
    /// The firmware tells 0.
    pub(crate) speed_kbps: u32,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortCounters {
    pub(crate) number: u8,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_dropped: u64,
}

const PORT_DESCRIPTION_BYTES: usize = 64;
/// Bits of a port's state.
const LINK_DOWN: u32 = 1;
const LIVE: u32 = 1 << 2;
/// Bit of a port's configuration: a port that is switched off is not live.
const PORT_DOWN: u32 = 1;
const PORT_STATISTICS_BYTES: usize = 112;

impl PortDescription {
    /// Returns the description in a message. Bytes that the firmware does not write are `None`.
    fn fields(self) -> [Option<u8>; PORT_DESCRIPTION_BYTES] {
        let mut bytes = [Some(0); PORT_DESCRIPTION_BYTES];
        let mut put = |at: usize, part: &[u8]| {
            for (target, byte) in bytes[at..].iter_mut().zip(part) {
                *target = Some(*byte);
            }
        };
        put(3, &[self.number]);
        put(8, &self.address);
        put(16, &[b'e', b't', b'h', b'0' + self.number - 1]);
        put(32, &self.config.to_be_bytes());
        let state = match (self.up, self.config & PORT_DOWN) {
            (false, _) => LINK_DOWN,
            (true, 0) => LIVE,
            (true, _) => 0,
        };
        put(36, &u32::to_be_bytes(state));
        put(40, &[0, 0, 0x08, 0x08]); // 100 Mbit/s full duplex, copper
        put(56, &self.speed_kbps.to_be_bytes());
        put(60, &self.speed_kbps.to_be_bytes());
        for pad in [4, 5, 6, 7, 14, 15] {
            bytes[pad] = None;
        }
        bytes
    }

    /// The description with what the firmware does not write as zero.
    pub(crate) fn bytes(self) -> [u8; PORT_DESCRIPTION_BYTES] {
        self.fields().map(Option::unwrap_or_default)
    }

    fn write(self, reply: &mut Reply) {
        for byte in self.fields() {
            match byte {
                Some(byte) => reply.u8(byte),
                None => reply.skip(1),
            }
        }
    }
}

/// How far the answer to a request for all entries has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowParts {
    next: usize,
    xid: [u8; 4],
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The reply is collected, or was left out.
    Collected,
    /// An error with this type and code about the request.
    Refused((u16, u16)),
    /// An error with this type and code about what stands in the reply buffer (quirk 109).
    RefusedAbroad((u16, u16)),
    /// There is no answer to requests of this type (quirk 100).
    Ignored(u16),
    Hangs(Hang),
}

impl Switch13 {
    /// Answers the `MULTIPART_REQUEST` at the beginning of `bytes`.
    pub(crate) fn multipart(
        &mut self,
        bytes: &[u8],
        clock: TableClock,
        surroundings: &mut impl Surroundings,
    ) -> (Answer, i64) {
        let xid = be32(bytes, 4).to_be_bytes();
        let kind = be16(bytes, 8);
        let wanted = be32(bytes, 16);
        let told = if wanted == ANY_PORT {
            surroundings.port_counters().len()
        } else {
            1
        };
        let cost_ps = self.multipart_ps(kind, told as i64);
        let answer = match kind {
            kind::FLOW => self.flow_request(xid, clock.now_s),
            kind::PORT_STATS => self.port_statistics(xid, wanted, &surroundings.port_counters()),
            kind::METER => self.meter_statistics(xid, wanted, clock.now_ms),
            kind::METER_CONFIG => self.meter_configuration(xid, wanted),
            kind::TABLE if !self.has_room_for_tables() => Answer::Collected,
            kind::DESC
            | kind::AGGREGATE
            | kind::TABLE
            | kind::GROUP
            | kind::GROUP_DESC
            | kind::GROUP_FEATURES
            | kind::METER_FEATURES
            | kind::TABLE_FEATURES
            | kind::PORT_DESC => {
                self.plain_reply(xid, kind, clock.now_s, surroundings);
                Answer::Collected
            }
            kind => Answer::Ignored(kind),
        };
        (answer, cost_ps)
    }

    /// Returns the cost of a reply; one with counters of ports has `ports` of them.
    fn multipart_ps(&self, kind: u16, ports: i64) -> i64 {
        let costs = &self.costs;
        let entries = self.entries.len() as i64;
        match kind {
            kind::DESC => costs.description_ps,
            kind::FLOW => {
                let told = entries.min(FLOW_ENTRIES as i64);
                costs.multipart_ps + costs.flow_statistics_entry_ps * told
            }
            kind::AGGREGATE => costs.multipart_ps + costs.aggregate_entry_ps * entries,
            kind::TABLE => costs.table_statistics_ps + costs.table_statistics_entry_ps * entries,
            kind::PORT_STATS => costs.port_statistics_ps + costs.port_statistics_port_ps * ports,
            kind::TABLE_FEATURES => costs.table_features_ps,
            kind::PORT_DESC => costs.port_description_ps,
            _ => costs.multipart_ps,
        }
    }

    /// Replies that nothing in the request changes (quirk 101).
    fn plain_reply(
        &mut self,
        xid: [u8; 4],
        kind: u16,
        now_s: u32,
        surroundings: &mut impl Surroundings,
    ) {
        let mut reply = self.replies.begin(4, kind, 0, xid);
        match kind {
            kind::TABLE => reply.zeros(4),
            _ => reply.skip(4),
        }
        match kind {
            kind::DESC => reply.put(&description()),
            kind::AGGREGATE => {
                let sum =
                    |count: fn(EntryView13) -> i64| self.entries.views().map(count).sum::<i64>();
                reply.i64(sum(|view| view.packets.into()));
                reply.i64(sum(|view| view.bytes.into()));
                reply.u32(self.entries.len() as u32);
                reply.skip(4);
            }
            kind::TABLE => {
                for (table, counters) in self.entries.tables.iter().enumerate() {
                    reply.put(&[table as u8, 0, 0, 0]);
                    reply.u32(self.entries.count(table) as u32);
                    reply.i64(counters.lookups.into());
                    reply.i64(counters.matches.into());
                }
            }
            kind::GROUP => {
                for group in self.groups.views() {
                    write_group(&mut reply, &group, now_s);
                }
            }
            kind::GROUP_DESC => {
                // A group without an area repeats the length of the one before it (quirk 112).
                let mut length = 0;
                for group in self.groups.views() {
                    if let Some(bucket) = group.bucket {
                        length = 8 + bucket.len() as u16;
                    }
                    reply.u16(length);
                    reply.u8(group.kind);
                    reply.skip(1);
                    reply.u32(group.id);
                    reply.put(group.bucket.unwrap_or(&[]));
                }
            }
            kind::GROUP_FEATURES => {
                reply.u32(1);
                reply.u32(0);
                reply.u32(4);
                reply.u32(0);
                reply.skip(8);
                reply.u32(0x0006_0001);
                reply.zeros(12);
            }
            kind::METER_FEATURES => {
                reply.u32(METERS as u32);
                reply.u32(0x0000_0006);
                reply.u32(0x0000_0003);
                reply.put(&[meters::BANDS as u8, 0]);
                reply.skip(2);
            }
            kind::TABLE_FEATURES => write_table_features(&mut reply),
            _ => {
                // The state is taken by position, not by port (quirk 97).
                let ports = surroundings.port_descriptions();
                for port in ports {
                    port.write(&mut reply);
                }
            }
        }
        reply.finish();
    }

    fn flow_request(&mut self, xid: [u8; 4], now_s: u32) -> Answer {
        let more = self.entries.len() > FLOW_ENTRIES;
        if more {
            let next = self.flow_parts.map_or(FLOW_ENTRIES, |parts| parts.next);
            self.flow_parts = Some(FlowParts { next, xid });
        }
        match self.flow_part(4, xid, 0, if more { MORE } else { 0 }, now_s) {
            Ok(_) => Answer::Collected,
            Err(hang) => Answer::Hangs(hang),
        }
    }

    /// Collects the part of an answer that begins at a position. Returns its length.
    fn flow_part(
        &mut self,
        version: u8,
        xid: [u8; 4],
        first: usize,
        flags: u16,
        now_s: u32,
    ) -> Result<usize, Hang> {
        let mut reply = self.replies.begin(version, kind::FLOW, flags, xid);
        reply.skip(4);
        let mut entries_bytes = 0;
        for view in self.entries.views().skip(first).take(FLOW_ENTRIES) {
            let length = view.entry.message_bytes();
            if length < field::MATCH + padded(view.entry.match_bytes()) {
                return Err(Hang::ShortFlowMod);
            }
            entries_bytes += length;
            if entries_bytes > REPLY_BYTES {
                break; // The others of this part are left out (quirk 103).
            }
            write_entry(&mut reply, &view, now_s);
        }
        let length = reply.len();
        reply.finish();
        Ok(length)
    }

    /// Returns whether the counters of all tables fit behind the replies that the segment has collected.
    pub(super) fn has_room_for_tables(&self) -> bool {
        self.replies.left() >= REPLY_HEAD_BYTES + 24 * TABLES
    }

    /// Returns whether the answer to a request for all entries would leave some out: a part has no room for its entries (quirk 103),
    /// is too long to be sent (quirk 104), or a former answer goes on (quirk 105).
    pub(super) fn leaves_entries_out(&self) -> bool {
        let lengths: Vec<usize> = self
            .entries
            .views()
            .map(|view| view.entry.message_bytes())
            .collect();
        let parts = lengths.chunks(FLOW_ENTRIES).enumerate();
        let mut parts = parts.map(|(index, part)| (index, part.iter().sum::<usize>()));
        self.has_more()
            || parts.any(|(index, bytes)| match index {
                0 => bytes > REPLY_BYTES,
                _ => bytes + REPLY_HEAD_BYTES >= REPLY_BYTES,
            })
    }

    /// Returns whether an answer goes on when the controller acknowledges something.
    pub(crate) const fn has_more(&self) -> bool {
        self.flow_parts.is_some()
    }

    /// Returns the next part of an answer to a request for all entries, or `None` if it is too long to be sent (quirk
    /// 104).
    pub(crate) fn next_part(&mut self, version: u8, now_s: u32) -> Result<Option<Vec<u8>>, Hang> {
        let Some(parts) = self.flow_parts else {
            return Ok(None);
        };
        let next = parts.next + FLOW_ENTRIES;
        let more = next < self.entries.len();
        self.flow_parts = more.then_some(FlowParts { next, ..parts });
        self.replies.wipe();
        let flags = if more { MORE } else { 0 };
        let length = self.flow_part(version, parts.xid, parts.next, flags, now_s)?;
        let part = self.replies.take();
        Ok((length < REPLY_BYTES).then_some(part))
    }

    fn port_statistics(&mut self, xid: [u8; 4], wanted: u32, ports: &[PortCounters]) -> Answer {
        let chosen: Vec<_> = ports
            .iter()
            .filter(|port| wanted == ANY_PORT || u32::from(port.number) == wanted)
            .collect();
        if chosen.is_empty() && wanted != ANY_PORT {
            return Answer::RefusedAbroad(BAD_PORT);
        }
        let left = self.replies.left();
        let mut reply = self.replies.begin(4, kind::PORT_STATS, 0, xid);
        reply.skip(4);
        let announced = REPLY_HEAD_BYTES + PORT_STATISTICS_BYTES * chosen.len();
        for port in chosen {
            if reply.len() + PORT_STATISTICS_BYTES > left {
                break;
            }
            reply.u32(port.number.into());
            reply.skip(4);
            for count in [
                port.received,
                port.sent,
                port.received_bytes,
                port.sent_bytes,
                port.received_dropped,
            ] {
                reply.u64(count);
            }
            reply.zeros(7 * 8);
            reply.skip(8);
        }
        reply.finish_as(announced);
        Answer::Collected
    }

    /// Returns the meters that a request means, by position.
    fn chosen_meters(&self, wanted: u32) -> Option<Vec<usize>> {
        let list = self.meters.list().iter().enumerate();
        let chosen: Vec<_> = list
            .filter(|(_, meter)| wanted == meter::ALL || meter.id == wanted)
            .map(|(position, _)| position)
            .collect();
        (wanted == meter::ALL || !chosen.is_empty()).then_some(chosen)
    }

    fn meter_statistics(&mut self, xid: [u8; 4], wanted: u32, now_ms: u64) -> Answer {
        let Some(chosen) = self.chosen_meters(wanted) else {
            return Answer::Refused(error::UNKNOWN_METER);
        };
        // Counted for the identifier of the request, also if that means all (quirk 115).
        let flows = self.entries.views();
        let users = flows
            .filter(|view| view.entry.program.meter == Some(wanted))
            .count();
        let mut reply = self.replies.begin(4, kind::METER, 0, xid);
        reply.skip(4);
        for position in chosen {
            let meter = &self.meters.list()[position];
            let (packets, bytes) = self.meters.counters(&self.pool, position);
            reply.u32(meter.id);
            reply.u16(40 + 16 * meter.bands.len() as u16);
            reply.skip(6);
            reply.u32(users as u32);
            reply.u64(packets);
            reply.u64(bytes);
            reply.u32((now_ms.saturating_sub(meter.added_ms) / 1_000) as u32);
            reply.u32(0);
            for band in &meter.bands {
                // Exchanged (quirk 114).
                reply.u64(band.bytes);
                reply.u64(band.packets);
            }
        }
        reply.finish();
        Answer::Collected
    }

    fn meter_configuration(&mut self, xid: [u8; 4], wanted: u32) -> Answer {
        let Some(chosen) = self.chosen_meters(wanted) else {
            return Answer::Refused(error::UNKNOWN_METER);
        };
        let mut reply = self.replies.begin(4, kind::METER_CONFIG, 0, xid);
        reply.skip(4);
        for position in chosen {
            write_meter_configuration(&mut reply, &self.meters.list()[position]);
        }
        reply.finish();
        Answer::Collected
    }
}

fn write_entry(reply: &mut Reply, view: &EntryView13, now_s: u32) {
    let entry = view.entry;
    reply.u16(entry.message_bytes() as u16);
    reply.u8(entry.table);
    reply.skip(1);
    reply.u32(now_s.saturating_sub(entry.installed_s));
    reply.u32(0);
    for at in [
        field::PRIORITY,
        field::IDLE_TIMEOUT,
        field::HARD_TIMEOUT,
        field::FLAGS,
    ] {
        reply.u16(entry.half(at));
    }
    reply.skip(4);
    reply.u64(entry.cookie());
    reply.u64(view.packets.into());
    reply.i64(view.bytes.into());
    reply.put(&entry.head[field::MATCH..]);
    let stored = &entry.oxms[entry.oxms.len().min(4)..];
    reply.put(stored);
    let match_bytes = 8 + stored.len();
    reply.skip(padded(entry.match_bytes()).saturating_sub(match_bytes));
    reply.put(&entry.instructions);
}

fn write_group(reply: &mut Reply, group: &GroupView, now_s: u32) {
    reply.u16(56);
    reply.skip(2);
    reply.u32(group.id);
    reply.u32(0);
    reply.skip(4);
    reply.zeros(16);
    reply.u32(now_s.saturating_sub(group.added_s));
    reply.skip(4);
    if group.bucket.is_some() {
        reply.zeros(16);
    }
}

fn write_meter_configuration(reply: &mut Reply, meter: &Meter) {
    reply.u16(8 + 16 * meter.bands.len() as u16);
    reply.u16(meter.flags);
    reply.u32(meter.id);
    for band in &meter.bands {
        reply.u16(band.kind);
        reply.u16(16);
        reply.u32(band.rate);
        reply.u32(band.burst);
        reply.skip(4); // The precedence is not told (quirk 117).
    }
}

/// One table of the ten, and wrong lengths of its fields (quirk 108).
fn write_table_features(reply: &mut Reply) {
    let identifier = |reply: &mut Reply, field: u8| reply.put(&[0x80, 0, field << 1, 4]);
    reply.u16(176);
    reply.u8(0);
    reply.skip(5);
    reply.put(b"table_0\0");
    reply.skip(24);
    reply.zeros(8 + 8 + 4);
    reply.u32(MAX_ENTRIES as u32);
    reply.put(&[0, 0, 0, 8, 0, 4, 0, 4]); // instructions: APPLY_ACTIONS
    reply.put(&[0, 2, 0, 4]); // next tables
    reply.skip(4);
    reply.put(&[0, 4, 0, 4]); // actions to write
    reply.skip(4);
    reply.put(&[0, 6, 0, 8, 0, 0, 0, 4]); // actions to apply: OUTPUT
    reply.put(&[0, 8, 0, 52]); // match
    for field in [
        oxm::IN_PORT,
        oxm::ETH_DST,
        oxm::ETH_SRC,
        oxm::ETH_TYPE,
        oxm::VLAN_VID,
        oxm::IP_PROTO,
        oxm::IPV4_SRC,
        oxm::IPV4_DST,
        oxm::TCP_SRC,
        oxm::TCP_DST,
        oxm::UDP_SRC,
        oxm::UDP_DST,
    ] {
        identifier(reply, field);
    }
    reply.skip(4);
    reply.put(&[0, 10, 0, 8]); // wildcards
    identifier(reply, oxm::IN_PORT);
    reply.put(&[0, 12, 0, 4]); // fields to write
    reply.skip(4);
    reply.put(&[0, 14, 0, 8]); // fields to apply
    identifier(reply, oxm::VLAN_VID);
}
