//! A switch as OpenFlow specifies it: tables, groups, meters, pipeline.
//!
//! The crate does no I/O, reads no clock, and knows no device. What a device limits is passed in: its ports
//! ([`PortSets`]), how much it holds ([`v1_3::Limits`], [`v1_3::Memory`]), and what each step of its work costs it
//! ([`v1_3::Observer`]).
#![forbid(unsafe_code)]

mod matched_entries;
mod port_set;
pub mod v1_0;
pub mod v1_3;

pub use matched_entries::MatchedEntries;
pub use port_set::{PortSet, PortSets, MAX_PORTS};
