//! What a Zodiac FX does with frames and OpenFlow messages, as a state machine.
//!
//! The crate does no I/O, reads no clock and starts no thread. A driver hands in frames, TCP segments and
//! the passing of time, each with its [`Instant`], and takes out frames, bytes for the controller and
//! [`Event`]s, each with its instant. The same calls give the same outputs on every machine.
//!
//! | module | what it is on the board |
//! |---|---|
//! | [`Board`] | the whole board |
//! | `port` | front ports, integrated switch and the link between it and the CPU |
//! | `buffers` | the receive ring of the CPU's MAC |
//! | `main_loop` | when the CPU looks into the ring |
//! | `cost` | how long the CPU works on a frame |
//! | `packet`, `matching`, `table`, `actions` | the data plane of OpenFlow 1.0 |
//! | `openflow` | agent, statistics and connection to the controller |
//! | [`Profile`], [`Config`] | numbers of the device, settings of one board |
//!
//! Frames take the time that the [`Profile`] gives them: the integrated switch, the link to the CPU, the wait for
//! the main loop, the table search by the entries that it visits, the actions, and the way out.
//!
//! Left out: what messages from the controller cost the CPU (they are handled in order of arrival, in no time);
//! OpenFlow 1.3; management traffic, console and web pages; flow timeouts, which the firmware takes from memory
//! addresses and which come after 8 minutes at the earliest; byte counters of ports; TCP frames that the firmware
//! truncates; the limit of 24 messages and 3216 bytes that wait for acknowledgement.
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
mod board;
mod buffers;
mod config;
mod cost;
mod event;
mod main_loop;
mod matching;
mod openflow;
mod outbox;
mod packet;
mod port;
mod profile;
mod quirks;
mod table;
mod time;

pub use board::Board;
pub use config::{Config, ConfigError, FailState, MacAddress};
pub use event::{Counters, Event};
pub use matching::Match;
pub use outbox::{Output, OutputKind};
pub use port::{PortMask, PortNumber};
pub use profile::{ControlCosts, Housekeeping, Profile, ProfileError, ZODIAC_FX};
pub use quirks::Quirks;
pub use table::Flow;
pub use time::{Duration, Instant};
