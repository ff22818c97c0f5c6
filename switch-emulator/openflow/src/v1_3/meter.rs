//! Meters (`ofp_meter_mod`).
#![allow(missing_docs)] // the standard's names

/// In messages: every meter.
pub const ALL: u32 = u32::MAX;

/// Flags of a meter.
pub mod flag {
    pub const KBPS: u16 = 1;
    pub const PACKETS: u16 = 2;
    pub const BURST: u16 = 4;
    pub const ALL: u16 = 15;
}

/// Types of bands.
pub mod band {
    pub const DROP: u16 = 1;
    pub const REMARK: u16 = 2;
}
