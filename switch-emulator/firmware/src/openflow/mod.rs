//! The OpenFlow agent: the connection to the controller, and the dataplanes of the board, of which the negotiated version
//! chooses one.
//!
//! A [`dataplane::Dataplane`] has the tables of one version and handles its messages and frames. There are three: the
//! firmware's 1.0 (`firmware10`), the firmware's 1.3 (`firmware13`), and 1.3 by the specification (`spec13`). They share
//! one [`state::AgentState`].

mod agent;
mod clock;
mod config;
mod connection;
mod console;
mod context;
mod control_traffic;
mod dataplane;
mod diagnosis;
mod firmware10;
mod firmware13;
mod flow_cache;
mod housekeeping;
mod messages;
mod negotiation;
mod ports;
mod rx_buffer;
mod session;
mod session13;
mod spec13;
mod state;

pub(crate) use agent::Agent;
pub(crate) use console::ConnectionState;
pub use flow_cache::FlowKey;

/// Stands for memory that the firmware sends without having written it.
const UNINITIALISED: u8 = 0;
