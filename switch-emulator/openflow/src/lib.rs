//! OpenFlow 1.0 and 1.3 on the wire: messages, match fields, actions on frames, errors.
//!
//! Readers take bytes as they came; those beyond the end of what was sent count as 0. Nothing here depends on a switch:
//! no tables, no capacities, no time.
//!
//! | module | contents |
//! |---|---|
//! | [`message`], [`message13`] | types of messages |
//! | [`wire`] | their header, and how one is written |
//! | [`v1_0`] | matches, wildcards, actions, `FLOW_MOD` and errors of OpenFlow 1.0 |
//! | [`v1_3`] | match fields (OXM), frames as the tables see them, `FLOW_MOD` and errors of OpenFlow 1.3 |
//! | [`ethernet`], [`bytes`] | types of frames; numbers in network byte order |
#![forbid(unsafe_code)]

pub mod bytes;
pub mod checksum;
pub mod ethernet;
pub mod flow_removed_reason;
pub mod message;
pub mod message13;
pub mod v1_0;
pub mod v1_3;
pub mod wire;

pub use flow_removed_reason::FlowRemovedReason;

/// Type and code of an error message.
pub type ErrorCode = (u16, u16);
