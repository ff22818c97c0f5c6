//! Types of messages of OpenFlow 1.3 that 1.0 does not have, or has under other numbers.
#![allow(missing_docs)] // the standard's names

pub const GROUP_MOD: u8 = 15;
pub const PORT_MOD: u8 = 16;
pub const TABLE_MOD: u8 = 17;
pub const MULTIPART_REQUEST: u8 = 18;
pub const MULTIPART_REPLY: u8 = 19;
pub const BARRIER_REQUEST: u8 = 20;
pub const BARRIER_REPLY: u8 = 21;
pub const QUEUE_REQUEST: u8 = 22;
pub const QUEUE_REPLY: u8 = 23;
pub const ROLE_REQUEST: u8 = 24;
pub const ROLE_REPLY: u8 = 25;
pub const ASYNC_REQUEST: u8 = 26;
pub const ASYNC_REPLY: u8 = 27;
pub const SET_ASYNC: u8 = 28;
pub const METER_MOD: u8 = 29;
