//! A source that sends by time slots, and a destination beside it: `zodiac-fx slots`.
//!
//! Slots begin at whole multiples of the period on the wall clock (`CLOCK_REALTIME`), so hosts whose clocks are
//! synchronised agree on them; or periods are counted from a given instant at which the run begins. The thread sleeps
//! until shortly before a slot, then looks at the clock until it begins. For each frame it notes when the slot began,
//! when it handed the frame over, when the kernel had taken it, and when the destination had it.

mod clock;
mod config;
mod frame;
mod namespace;
mod packet_ring;
mod receiver;
mod rows;
mod run;
mod schedule;
mod sender;
mod tx_path;

pub use config::{FlowConfig, FramePath, SlotsConfig};
pub use run::{run, RunSummary};
