//! The OpenFlow agent: the connection to the controller and what both versions share, and the messages of OpenFlow 1.0.
//! Its state is in `config`, `tables`, `ports`, `clock` and `rx_buffer`. Messages of 1.3 are in `version13`, its tables in
//! [`crate::openflow13`]. What the specification asks instead is in `spec` and `spec13`.

mod agent;
mod clock;
mod config;
mod connection;
mod console;
mod control_traffic;
mod diagnosis;
mod features;
mod flow_cache;
mod forwarding;
mod housekeeping;
mod ports;
mod rx_buffer;
mod session;
mod session13;
mod spec;
mod spec13;
mod statistics;
mod tables;
mod version13;

pub(crate) use agent::Agent;
pub(crate) use console::ConnectionState;
pub use flow_cache::FlowKey;

/// Stands for memory that the firmware sends without having written it.
const UNINITIALISED: u8 = 0;
