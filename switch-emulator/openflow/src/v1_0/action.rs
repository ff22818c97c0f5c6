//! Types of actions (`ofp_action_type`).
#![allow(missing_docs)] // the standard's names

pub const OUTPUT: u16 = 0;
pub const SET_VLAN_VID: u16 = 1;
pub const SET_VLAN_PCP: u16 = 2;
pub const STRIP_VLAN: u16 = 3;
pub const SET_DL_SRC: u16 = 4;
pub const SET_DL_DST: u16 = 5;
pub const SET_NW_SRC: u16 = 6;
pub const SET_NW_DST: u16 = 7;
pub const SET_NW_TOS: u16 = 8;
pub const SET_TP_SRC: u16 = 9;
pub const SET_TP_DST: u16 = 10;
pub const ENQUEUE: u16 = 11;
pub const VENDOR: u16 = 0xffff;

/// Returns the length of actions of this type; `None` for those of vendors, and unknown ones.
#[must_use]
pub const fn length(kind: u16) -> Option<usize> {
    match kind {
        SET_DL_SRC | SET_DL_DST | ENQUEUE => Some(16),
        OUTPUT..=SET_TP_DST => Some(8),
        _ => None,
    }
}
