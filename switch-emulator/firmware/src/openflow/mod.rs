//! The OpenFlow 1.0 agent: messages, statistics, forwarding, and the connection to the controller.

mod agent;
pub(crate) mod bytes;
mod connection;
mod console;
mod features;
mod forwarding;
mod housekeeping;
mod standard;
mod statistics;
mod transmit;
mod wire;

pub(crate) use agent::Agent;
pub(crate) use console::ConnectionState;
