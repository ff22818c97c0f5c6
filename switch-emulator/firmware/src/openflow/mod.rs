//! The OpenFlow 1.0 agent: messages, statistics, forwarding, and the connection to the controller.

mod agent;
pub(crate) mod bytes;
mod connection;
mod console;
mod control_traffic;
mod features;
mod forwarding;
mod housekeeping;
mod session;
mod standard;
mod statistics;
mod wire;

pub(crate) use agent::Agent;
pub(crate) use console::ConnectionState;
