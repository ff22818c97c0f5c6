//! This machine as programs in real time see it: raw sockets, threads that keep a core, and what the machine withholds.

pub mod ancillary;
pub mod error;
pub mod histogram;
pub mod packet_socket;
pub mod realtime;
pub mod stall;
