//! Groups: four, each with the first of its buckets (quirks 111, 112, 166 to 173).

use super::instructions::{read_actions, Action13};
use openflow::bytes::{be16, be32};
use openflow::v1_3::error;

/// Groups, with identifiers from 1.
pub(super) const GROUPS: usize = 4;
/// Bytes that a group keeps of its buckets.
pub(super) const AREA_BYTES: usize = 64;
/// Head of a `GROUP_MOD`.
const GROUP_MOD_BYTES: usize = 16;
/// Head of a bucket.
const BUCKET_BYTES: usize = 16;

/// One group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    is_active: bool,
    kind: u8,
    /// Where its buckets lie; kept when it is deleted.
    area: Option<usize>,
    /// Agent seconds.
    pub(super) added_s: u32,
}

/// Memory of buckets. It is never cleared.
#[derive(Clone, Copy, Debug)]
struct Area {
    bytes: [u8; AREA_BYTES],
    is_used: bool,
}

/// An active group, for statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupView<'a> {
    pub(super) id: u32,
    pub(super) kind: u8,
    pub(super) added_s: u32,
    /// Its first bucket, if it has an area.
    pub(super) bucket: Option<&'a [u8]>,
}

/// The groups.
#[derive(Debug)]
pub(super) struct Groups {
    groups: [Group; GROUPS],
    areas: [Area; GROUPS],
}

impl Groups {
    pub(super) const fn new() -> Self {
        Self {
            groups: [Group {
                is_active: false,
                kind: 0,
                area: None,
                added_s: 0,
            }; GROUPS],
            areas: [Area {
                bytes: [0; AREA_BYTES],
                is_used: false,
            }; GROUPS],
        }
    }

    /// All groups become inactive. Which bucket belongs to which stays (quirks 170, 189).
    pub(super) fn clear(&mut self) {
        for group in &mut self.groups {
            group.is_active = false;
        }
        for area in &mut self.areas {
            area.is_used = false;
        }
    }

    /// Carries out a `GROUP_MOD` of `length` bytes at the beginning of `bytes`. Returns type and code of the error if
    /// it is refused.
    pub(super) fn modify(
        &mut self,
        bytes: &[u8],
        length: usize,
        now_s: u32,
    ) -> Result<(), (u16, u16)> {
        let id = be32(bytes, 12) as usize;
        let index = id.checked_sub(1).filter(|index| *index < GROUPS);
        match (be16(bytes, 8), index) {
            (0, Some(index)) if !self.groups[index].is_active => {
                let buckets = bytes.get(GROUP_MOD_BYTES..length).unwrap_or(&[]);
                self.add(index, bytes.get(10).copied().unwrap_or(0), buckets, now_s)
            }
            (0, _) => Err(error::GROUP_EXISTS),
            (2, Some(index)) => {
                let group = &mut self.groups[index];
                group.is_active = false;
                if let Some(area) = group.area {
                    self.areas[area].is_used = false;
                }
                Ok(())
            }
            // MODIFY, unknown commands, and DELETE of all or of identifiers that are none (quirk 169).
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        index: usize,
        kind: u8,
        buckets: &[u8],
        now_s: u32,
    ) -> Result<(), (u16, u16)> {
        let group = &mut self.groups[index];
        group.is_active = true;
        group.kind = kind;
        group.added_s = now_s;
        if buckets.len() > AREA_BYTES {
            return Err(error::BAD_BUCKET);
        }
        let free = self.areas.iter().position(|area| !area.is_used);
        if let Some(area) = free {
            self.areas[area].is_used = true;
            self.areas[area].bytes[..buckets.len()].copy_from_slice(buckets);
            group.area = free;
        }
        Ok(())
    }

    /// Returns whether there is, or was, a bucket of the group with this number.
    pub(super) fn had(&self, id: u32) -> bool {
        let index = (id as usize).checked_sub(1);
        let group = index.and_then(|index| self.groups.get(index));
        group.is_some_and(|group| group.area.is_some())
    }

    /// Active groups, ascending.
    pub(super) fn views(&self) -> impl Iterator<Item = GroupView<'_>> {
        let active = self.groups.iter().enumerate();
        active
            .filter(|(_, group)| group.is_active)
            .map(|(index, group)| GroupView {
                id: index as u32 + 1,
                kind: group.kind,
                added_s: group.added_s,
                bucket: group.area.map(|area| {
                    let bytes = &self.areas[area].bytes;
                    &bytes[..usize::from(be16(bytes, 0)).min(AREA_BYTES)]
                }),
            })
    }

    /// Returns the actions for a frame that is sent to a group: those of its first bucket, of an inactive group, too.
    /// Returns `None` if the group never had a bucket (quirk 173).
    pub(super) fn actions(&self, id: u32) -> Option<Vec<Action13>> {
        let group = self.groups.get((id as usize).checked_sub(1)?)?;
        let bytes = &self.areas[group.area?].bytes;
        let length = usize::from(be16(bytes, 0)).saturating_sub(BUCKET_BYTES);
        Some(read_actions(&bytes[BUCKET_BYTES..], length))
    }
}
