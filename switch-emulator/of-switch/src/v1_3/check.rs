//! Checks of messages without carrying them out.

use super::actions::Scope;
use super::groups::SpecGroup;
use super::instructions::SpecProgram;
use super::{Ids, Limits};
use crate::PortSets;
use openflow::v1_3::error;
use openflow::v1_3::flow_mod::field;
use openflow::v1_3::OxmMatch;
use openflow::ErrorCode;

/// Checks the buckets of a `GROUP_MOD`.
///
/// # Errors
///
/// Type and code of the error that OpenFlow 1.3.4 asks for.
pub fn check_group(message: &[u8], ports: PortSets, limits: Limits) -> Result<(), ErrorCode> {
    SpecGroup::read(message, ports, limits, 0).map(|_| ())
}

/// Checks match and instructions of an entry, and returns the match.
///
/// # Errors
///
/// Type and code of the error that OpenFlow 1.3.4 asks for.
pub fn check_entry(
    message: &[u8],
    ports: PortSets,
    limits: Limits,
    groups: &dyn Ids,
    meters: &dyn Ids,
) -> Result<OxmMatch, ErrorCode> {
    let (fields, _, padded) = OxmMatch::read(&message[field::MATCH..])?;
    let table = message[field::TABLE];
    if table >= limits.tables {
        return Err(error::BAD_TABLE);
    }
    let scope = Scope {
        ports,
        groups: Some(groups),
        to_tables: false,
    };
    let instructions = &message[field::MATCH + padded..];
    SpecProgram::read(
        instructions,
        (table, limits.tables),
        scope,
        meters,
        fields.known(),
    )?;
    Ok(fields)
}
