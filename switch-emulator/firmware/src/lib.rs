//! State machine of a Zodiac FX: frames and OpenFlow messages.
//!
//! The crate does no I/O, reads no clock and starts no thread. A driver passes in frames, TCP segments and the time,
//! each with its [`Instant`], and drains frames, bytes for the controller and [`Event`]s, each with its instant. The
//! same calls return the same outputs on every machine.
//!
//! | module | what it is on the board |
//! |---|---|
//! | [`Board`] | the whole board |
//! | `port` | front ports, integrated switch and the link between it and the CPU |
//! | `buffers` | the receive ring of the CPU's MAC |
//! | `main_loop`, `pass` | when the CPU looks into the ring, and what it does in one pass |
//! | `cost` | how long the CPU works on a frame |
//! | `packet`, `matching`, `table`, `actions` | the data plane of OpenFlow 1.0 |
//! | `native` | the board on its control network: ARP, ping, TCP |
//! | `openflow` | agent, statistics, housekeeping, connection to the controller |
//! | `openflow13` | tables, groups, meters and multipart replies of OpenFlow 1.3 |
//! | `console` | the command line on the USB port |
//! | `settings` | the configuration that the console changes, and its image in the EEPROM |
//! | [`Profile`], [`Config`] | numbers of the device, settings of one board |
//!
//! Frames take the time that the [`Profile`] says: the integrated switch, the link to the CPU, the wait for the main
//! loop, the table search by the entries that it visits, the actions, and the way out.
//!
//! Messages of the controller take time on the same CPU, so that frames wait for them and they for frames. The
//! firmware deviates from OpenFlow 1.0.1 in 96 numbered ways, and from 1.3 in 106 more; [`Quirks`] says which of them a
//! board shows.
//!
//! The TCP connection to the controller is the board's, as frames on its native ports, or the driver's
//! ([`ControlCarrier`]). With the driver's the board knows of TCP what decides which messages reach the controller
//! (segments, send buffer, congestion window, truncated frames), with acknowledgements after
//! [`Config::acknowledgement_ns`]. Left out: web pages; what a crash leaves in memory that the firmware still uses.
//!
//! ```
//! use zodiac_firmware::{Board, Config, Instant, Profile, ZODIAC_FX};
//!
//! let profile = Profile::from_toml(ZODIAC_FX).unwrap();
//! let mut board = Board::new(&profile, Config::default(), 0).unwrap();
//! board.advance(Instant::ZERO); // power on
//! board.advance(Instant::from_nanos(3_000_000_000));
//! let output = board.poll_output().expect("the board has tried to reach its controller");
//! assert_eq!(output.kind, zodiac_firmware::OutputKind::Connect);
//! ```
#![forbid(unsafe_code)]
// Lengths of frames and messages, counts of entries: far below 2^31.
#![allow(clippy::cast_possible_wrap)]

mod actions;
mod block_pool;
mod board;
mod buffers;
mod config;
mod console;
mod cost;
mod event;
mod integrated_switch;
mod loop_iteration;
mod main_loop;
mod matching;
mod native;
mod openflow;
mod openflow13;
mod outbox;
mod packet;
mod port;
mod profile;
mod quirks;
mod random;
mod settings;
mod table;
mod time;
mod work;

pub use crate::openflow::FlowKey;
pub use ::openflow::v1_0::Match;
pub use board::{Board, Deferrable, DeferredFrame, Forwarded};
pub use config::{Config, ConfigError, ControlCarrier, FailState, MacAddress};
pub use event::{Cause, Counters, Event, Hang};
pub use integrated_switch::is_pause_frame;
pub use native::{FrameQueues, MAX_SEGMENT_BYTES};
pub use openflow13::Flow13;
pub use outbox::{Output, OutputKind};
pub use port::{PortMask, PortNumber};
pub use profile::{
    check, number, profile_kind, some_number, ConsoleCosts, ControlCosts, CpuPortTags, FieldCost,
    Housekeeping, Measurement, NumberSource, OpenFlow13Costs, Profile, ProfileError, Sourced,
    Tolerance, ValueRule, ZODIAC_FX,
};
pub use quirks::{Quirk, QuirkSet, Quirks, UnknownQuirk};
pub use settings::{EepromError, EepromImage, EEPROM_BYTES};
pub use table::Flow;
pub use time::{Duration, Instant};
