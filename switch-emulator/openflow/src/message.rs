//! Types of messages (`ofp_type`) of OpenFlow 1.0; those of 1.3 are the same where [`crate::message13`] does not name them.
#![allow(missing_docs)] // the standard's names

pub const HELLO: u8 = 0;
pub const ERROR: u8 = 1;
pub const ECHO_REQUEST: u8 = 2;
pub const ECHO_REPLY: u8 = 3;
pub const VENDOR: u8 = 4;
pub const FEATURES_REQUEST: u8 = 5;
pub const FEATURES_REPLY: u8 = 6;
pub const GET_CONFIG_REQUEST: u8 = 7;
pub const GET_CONFIG_REPLY: u8 = 8;
pub const SET_CONFIG: u8 = 9;
pub const PACKET_IN: u8 = 10;
pub const FLOW_REMOVED: u8 = 11;
pub const PORT_STATUS: u8 = 12;
pub const PACKET_OUT: u8 = 13;
pub const PORT_MOD: u8 = 15;
pub const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
pub const QUEUE_GET_CONFIG_REPLY: u8 = 21;
pub const FLOW_MOD: u8 = 14;
pub const STATS_REQUEST: u8 = 16;
pub const STATS_REPLY: u8 = 17;
pub const BARRIER_REQUEST: u8 = 18;
pub const BARRIER_REPLY: u8 = 19;
