//! `FLOW_MOD` (`ofp_flow_mod`).

/// Everything before the actions.
pub const FLOW_MOD_BYTES: usize = 72;
/// Buffer of a message that has its frame with it, or none.
pub const NO_BUFFER: u32 = u32::MAX;

/// Where a field lies in a message.
#[allow(missing_docs)] // the standard's names
pub mod field {
    pub const MATCH: usize = 8;
    pub const COOKIE: usize = 48;
    pub const COMMAND: usize = 56;
    pub const IDLE_TIMEOUT: usize = 58;
    pub const HARD_TIMEOUT: usize = 60;
    pub const PRIORITY: usize = 62;
    pub const BUFFER: usize = 64;
    pub const OUT_PORT: usize = 68;
    pub const FLAGS: usize = 70;
    pub const ACTIONS: usize = super::FLOW_MOD_BYTES;
}

/// Flags.
#[allow(missing_docs)] // the standard's names
pub mod flag {
    pub const SEND_FLOW_REMOVED: u16 = 1;
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    pub const EMERGENCY: u16 = 1 << 2;
}
