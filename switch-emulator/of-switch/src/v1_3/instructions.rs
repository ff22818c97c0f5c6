//! Instructions of an entry (OpenFlow 1.3.4, sections 5.9 and 7.2.4).

use super::actions::{self, Scope, SpecAction};
use super::Ids;
use openflow::bytes::{be16, be32, be64};
use openflow::v1_3::error;
use openflow::v1_3::KnownFields;
use openflow::ErrorCode;

/// Instructions of an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecProgram {
    pub(super) meter: Option<u32>,
    pub(super) apply: Vec<SpecAction>,
    pub(super) clear: bool,
    pub(super) write: Vec<SpecAction>,
    /// Value and mask.
    pub(super) metadata: Option<(u64, u64)>,
    pub(super) next_table: Option<u8>,
}

impl SpecProgram {
    /// Reads and checks the instructions of an entry of `table`, one of `tables`, whose frames are as `known` says.
    pub(super) fn read(
        mut bytes: &[u8],
        (table, tables): (u8, u8),
        scope: Scope,
        meters: &dyn Ids,
        known: KnownFields,
    ) -> Result<Self, ErrorCode> {
        let mut program = Self::default();
        let mut seen = Vec::new();
        while !bytes.is_empty() {
            let (kind, length) = (be16(bytes, 0), usize::from(be16(bytes, 2)));
            if bytes.len() < 8 || length < 8 || length % 8 != 0 || length > bytes.len() {
                return Err(error::BAD_INSTRUCTION_LENGTH);
            }
            let (this, rest) = bytes.split_at(length);
            let expected = match kind {
                1 | 5 | 6 => 8,
                2 => 24,
                3 | 4 => length,
                0xffff => return Err(error::BAD_INSTRUCTION_EXPERIMENTER),
                _ => return Err(error::UNKNOWN_INSTRUCTION),
            };
            if length != expected {
                return Err(error::BAD_INSTRUCTION_LENGTH);
            }
            if seen.contains(&kind) {
                // At most one of each type; 1.3 has no error of its own for a second one.
                return Err(error::UNSUPPORTED_INSTRUCTION);
            }
            seen.push(kind);
            match kind {
                1 if this[4] <= table || this[4] >= tables => {
                    return Err(error::BAD_NEXT_TABLE);
                }
                1 => program.next_table = Some(this[4]),
                2 => program.metadata = Some((be64(this, 8), be64(this, 16))),
                // A set is carried out on another frame than the one that the entry has matched.
                3 => program.write = actions::read(&this[8..], scope, None)?,
                4 => program.apply = actions::read(&this[8..], scope, Some(known))?,
                5 => program.clear = true,
                _ => {
                    let meter = be32(this, 4);
                    if !meters.has(meter) {
                        return Err(error::UNKNOWN_METER);
                    }
                    program.meter = Some(meter);
                }
            }
            bytes = rest;
        }
        Ok(program)
    }

    fn actions(&self) -> impl Iterator<Item = &SpecAction> {
        self.apply.iter().chain(&self.write)
    }

    /// Returns whether it sends frames to one of these groups.
    pub(super) fn uses_group(&self, groups: &[u32]) -> bool {
        self.actions()
            .any(|action| matches!(action, SpecAction::Group(id) if groups.contains(id)))
    }

    /// Returns whether it sends to this group.
    pub(super) fn sends_to_group(&self, group: u32) -> bool {
        self.uses_group(&[group])
    }

    /// Returns whether it sends to this port.
    pub(super) fn sends_to_port(&self, wanted: u32) -> bool {
        self.actions()
            .any(|action| matches!(action, SpecAction::Output { port, .. } if *port == wanted))
    }
}
