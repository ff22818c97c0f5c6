//! Reserved port numbers (`ofp_port`).
#![allow(missing_docs)] // the standard's names

pub const IN_PORT: u16 = 0xfff8;
pub const TABLE: u16 = 0xfff9;
pub const NORMAL: u16 = 0xfffa;
pub const FLOOD: u16 = 0xfffb;
pub const ALL: u16 = 0xfffc;
pub const CONTROLLER: u16 = 0xfffd;
pub const NONE: u16 = 0xffff;
