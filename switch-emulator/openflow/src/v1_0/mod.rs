//! OpenFlow 1.0 (1.0.1).

pub mod action;
pub mod error;
mod flow_match;
pub mod flow_mod;
pub mod port;
mod rewrite;
pub mod wildcards;

pub use flow_match::{is_fragment, Match, MATCH_BYTES};
pub use rewrite::Rewrite;
