//! Reserved port numbers (`ofp_port_no`).
#![allow(missing_docs)] // the standard's names

pub const FIRST_RESERVED: u32 = 0xffff_ff00;
pub const IN_PORT: u32 = 0xffff_fff8;
pub const TABLE: u32 = 0xffff_fff9;
pub const FLOOD: u32 = 0xffff_fffb;
pub const ALL: u32 = 0xffff_fffc;
pub const CONTROLLER: u32 = 0xffff_fffd;
/// In filters: any port or group.
pub const ANY: u32 = u32::MAX;
