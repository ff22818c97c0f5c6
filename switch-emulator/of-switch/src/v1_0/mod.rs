//! OpenFlow 1.0 (1.0.1): one table of entries. No session and no clock.
//!
//! The actions of a switch, and the place of its entries, are its own business ([`Backing`]).

mod actions;
mod request;
mod table;

pub use actions::ActionLimits;
pub use request::{FlowCommand, FlowRequest};
pub use table::{Backing, EntryOrder, FlowEntry, FlowModDone, SpecTable};

#[cfg(test)]
mod tests;
