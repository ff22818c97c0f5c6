//! Bits of `wildcards` in a match of OpenFlow 1.0 (`ofp_flow_wildcards`).
#![allow(missing_docs)] // the standard's names

pub const IN_PORT: u32 = 1 << 0;
pub const DL_VLAN: u32 = 1 << 1;
pub const DL_SRC: u32 = 1 << 2;
pub const DL_DST: u32 = 1 << 3;
pub const DL_TYPE: u32 = 1 << 4;
pub const NW_PROTO: u32 = 1 << 5;
pub const TP_SRC: u32 = 1 << 6;
pub const TP_DST: u32 = 1 << 7;
pub const NW_SRC_SHIFT: u32 = 8;
pub const NW_DST_SHIFT: u32 = 14;
pub const DL_VLAN_PCP: u32 = 1 << 20;
pub const NW_TOS: u32 = 1 << 21;
/// Every field is open.
pub const ALL: u32 = 0x003f_ffff;

/// Returns whether a match with these wildcards compares any bits of the address at `shift`.
#[must_use]
pub const fn names_address(wild: u32, shift: u32) -> bool {
    wild >> shift & 0x3f < 32
}
