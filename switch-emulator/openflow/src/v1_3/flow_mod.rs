//! `FLOW_MOD` (`ofp_flow_mod`).
#![allow(missing_docs)] // the standard's names

/// In messages: every table.
pub const ALL_TABLES: u8 = 0xff;
/// Everything before the match, and its header.
pub const FLOW_MOD_BYTES: usize = 56;

/// Where a field lies in a message.
pub mod field {
    pub const COOKIE: usize = 8;
    pub const COOKIE_MASK: usize = 16;
    pub const TABLE: usize = 24;
    pub const COMMAND: usize = 25;
    pub const IDLE_TIMEOUT: usize = 26;
    pub const HARD_TIMEOUT: usize = 28;
    pub const PRIORITY: usize = 30;
    pub const BUFFER: usize = 32;
    pub const OUT_PORT: usize = 36;
    pub const OUT_GROUP: usize = 40;
    pub const FLAGS: usize = 44;
    pub const MATCH: usize = 48;
    pub const OXMS: usize = 52;
}

/// Flags.
pub mod flag {
    pub const SEND_FLOW_REMOVED: u16 = 1;
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    pub const RESET_COUNTS: u16 = 1 << 2;
    pub const NO_PACKET_COUNTS: u16 = 1 << 3;
    pub const NO_BYTE_COUNTS: u16 = 1 << 4;
    pub const ALL: u16 = 0x1f;
}
