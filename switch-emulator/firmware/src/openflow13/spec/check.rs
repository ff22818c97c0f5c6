//! Checks of messages without carrying them out, for the diagnosis of what the firmware does not check.

use super::actions::Scope;
use super::groups::SpecGroup;
use super::instructions::SpecProgram;
use super::{ErrorCode, Ids, PortSets};
use crate::openflow13::table::TABLES;
use crate::time::Instant;
use openflow::v1_3::error;
use openflow::v1_3::flow_mod::field;
use openflow::v1_3::OxmMatch;

/// Checks the buckets of a `GROUP_MOD`.
///
/// # Errors
///
/// Type and code of the error that OpenFlow 1.3.4 asks for.
pub(in super::super) fn check_group(message: &[u8], ports: PortSets) -> Result<(), ErrorCode> {
    SpecGroup::read(message, ports, Instant::ZERO).map(|_| ())
}

/// Checks match and instructions of an entry, and returns the match.
///
/// # Errors
///
/// Type and code of the error that OpenFlow 1.3.4 asks for.
pub(in super::super) fn check_entry(
    message: &[u8],
    ports: PortSets,
    groups: &dyn Ids,
    meters: &dyn Ids,
) -> Result<OxmMatch, ErrorCode> {
    let (fields, _, padded) = OxmMatch::read(&message[field::MATCH..])?;
    let table = message[field::TABLE];
    if usize::from(table) >= TABLES {
        return Err(error::BAD_TABLE);
    }
    let scope = Scope {
        ports,
        groups: Some(groups),
        to_tables: false,
    };
    let instructions = &message[field::MATCH + padded..];
    SpecProgram::read(instructions, table, scope, meters, fields.known())?;
    Ok(fields)
}
