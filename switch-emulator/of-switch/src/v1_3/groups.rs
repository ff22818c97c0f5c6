//! Groups (OpenFlow 1.3.4, sections 5.6 and 7.3.4.2).

use std::collections::BTreeMap;

use super::actions::{self, ActionSet, Scope};
use super::{Ids, Limits};
use crate::PortSets;
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;
use openflow::ErrorCode;

const GROUP_MOD_BYTES: usize = 16;
const BUCKET_BYTES: usize = 16;
/// Highest identifier of a group.
const LAST_ID: u32 = 0xffff_ff00;
/// In messages: every group.
const ALL: u32 = 0xffff_fffc;
/// In buckets and filters: any port or group.
const ANY: u32 = u32::MAX;

/// How a group chooses among its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    All = 0,
    Select = 1,
    Indirect = 2,
    FastFailover = 3,
}

/// A bucket.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    weight: u16,
    watched_port: u32,
    pub(super) actions: ActionSet,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// A group.
#[derive(Clone, Debug)]
pub(super) struct SpecGroup {
    pub(super) kind: GroupKind,
    /// As they were sent.
    pub(super) message: Vec<u8>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) added_ns: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The groups, by their identifiers.
#[derive(Debug, Default)]
pub(super) struct SpecGroups(BTreeMap<u32, SpecGroup>);

impl SpecGroups {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &SpecGroup)> {
        self.0.iter().map(|(id, group)| (*id, group))
    }

    /// Carries out a `GROUP_MOD`. Returns the groups that have gone.
    pub(super) fn modify(
        &mut self,
        message: &[u8],
        ports: PortSets,
        limits: Limits,
        now_ns: u64,
    ) -> Result<Vec<u32>, ErrorCode> {
        if message.len() < GROUP_MOD_BYTES {
            return Err(error::BAD_LENGTH);
        }
        let (command, id) = (be16(message, 8), be32(message, 12));
        match command {
            0 | 1 => {
                let exists = self.has(id);
                match (command, exists) {
                    _ if id > LAST_ID => return Err(error::INVALID_GROUP),
                    (0, true) => return Err(error::GROUP_EXISTS),
                    (1, false) => return Err(error::UNKNOWN_GROUP),
                    (0, false) if self.0.len() == limits.groups => {
                        return Err(error::OUT_OF_GROUPS)
                    }
                    _ => {}
                }
                let group = SpecGroup::read(message, ports, limits, now_ns)?;
                self.0.insert(id, group);
                Ok(Vec::new())
            }
            2 if id == ALL => Ok(std::mem::take(&mut self.0).into_keys().collect()),
            2 if id > LAST_ID => Err(error::INVALID_GROUP),
            2 => Ok(self.0.remove(&id).map(|_| id).into_iter().collect()),
            _ => Err(error::BAD_GROUP_COMMAND),
        }
    }

    /// Sends a frame of `bytes` bytes to a group. Returns the action sets for its copies. `draw` is the same for all
    /// frames of a flow.
    pub(super) fn choose(
        &mut self,
        id: u32,
        bytes: usize,
        ports: PortSets,
        draw: u32,
    ) -> Vec<ActionSet> {
        let Some(group) = self.0.get_mut(&id) else {
            return Vec::new();
        };
        group.packets += 1;
        group.bytes += bytes as u64;
        let chosen: Vec<usize> = match group.kind {
            GroupKind::All => (0..group.buckets.len()).collect(),
            GroupKind::Indirect => vec![0],
            GroupKind::Select => group.select(draw).into_iter().collect(),
            GroupKind::FastFailover => {
                let is_live = |bucket: &Bucket| ports.is_live(bucket.watched_port);
                group.buckets.iter().position(is_live).into_iter().collect()
            }
        };
        let mut sets = Vec::new();
        for index in chosen {
            if let Some(bucket) = group.buckets.get_mut(index) {
                bucket.packets += 1;
                bucket.bytes += bytes as u64;
                sets.push(bucket.actions.clone());
            }
        }
        sets
    }
}

impl Ids for SpecGroups {
    fn has(&self, id: u32) -> bool {
        self.0.contains_key(&id)
    }
}

impl SpecGroup {
    pub(super) fn read(
        message: &[u8],
        ports: PortSets,
        limits: Limits,
        now_ns: u64,
    ) -> Result<Self, ErrorCode> {
        let kind = match message[10] {
            0 => GroupKind::All,
            1 => GroupKind::Select,
            2 => GroupKind::Indirect,
            3 => GroupKind::FastFailover,
            _ => return Err(error::BAD_GROUP_TYPE),
        };
        let mut rest = &message[GROUP_MOD_BYTES..];
        if rest.len() > limits.bucket_bytes {
            return Err(error::OUT_OF_BUCKETS);
        }
        let mut buckets = Vec::new();
        let scope = Scope {
            ports,
            groups: None,
            to_tables: false,
        };
        while !rest.is_empty() {
            let length = usize::from(be16(rest, 0));
            if length < BUCKET_BYTES || length % 8 != 0 || length > rest.len() {
                return Err(error::BAD_BUCKET);
            }
            let (bytes, behind) = rest.split_at(length);
            let (weight, watched_port) = (be16(bytes, 2), be32(bytes, 4));
            // A group with a field that its type does not define is invalid (section 6.5).
            if weight != 0 && kind != GroupKind::Select {
                return Err(error::INVALID_GROUP);
            }
            // Any bucket may name what it watches, but only those of FAST_FAILOVER must.
            let watches_a_port = ports.exists(watched_port) && be32(bytes, 8) == ANY;
            if kind == GroupKind::FastFailover && !watches_a_port {
                return Err(error::BAD_WATCH);
            }
            let mut set = ActionSet::default();
            set.write(&actions::read(&bytes[BUCKET_BYTES..], scope, None)?);
            buckets.push(Bucket {
                weight,
                watched_port,
                actions: set,
                packets: 0,
                bytes: 0,
            });
            rest = behind;
        }
        if kind == GroupKind::Indirect && buckets.len() != 1 {
            return Err(error::INVALID_GROUP);
        }
        Ok(Self {
            kind,
            message: message[GROUP_MOD_BYTES..].to_vec(),
            buckets,
            added_ns: now_ns,
            packets: 0,
            bytes: 0,
        })
    }

    /// Returns the bucket that a draw falls on, by weight; those of weight 0 get nothing.
    fn select(&self, draw: u32) -> Option<usize> {
        let total: u32 = self.buckets.iter().map(|it| u32::from(it.weight)).sum();
        let mut left = draw.checked_rem(total)?;
        self.buckets.iter().position(|bucket| {
            let weight = u32::from(bucket.weight);
            let falls = left < weight;
            left = left.saturating_sub(weight);
            falls
        })
    }
}
