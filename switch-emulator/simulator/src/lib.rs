//! Boards, hosts, links and taps in virtual time.
//!
//! A [`Network`] is built from boards (the firmware of `zodiac-firmware`, unchanged), other switches, hosts and links.
//! Sources on its hosts send as in the Loko paper (section 6.1), and a run returns the instants at which each frame
//! passed its taps. Time is counted in integer nanoseconds, all randomness comes from one seed, and simultaneous events
//! happen in the order in which they were scheduled: the same calls return the same bytes on every machine.
//!
//! | module | what it is |
//! |---|---|
//! | [`Network`] | the builder: boards, hosts, cables, controller sessions, sources |
//! | `device` | what stands between links: boards, and switches of other kinds |
//! | `queue` | disciplines before a port: what waits, and what leaves next |
//! | `run` | the event loop: of a whole run, or step by step for a caller that decides meanwhile what hosts send |
//! | `schedule` | what happens next |
//! | `link` | one direction of a cable: serialisation, propagation |
//! | `inbox` | what is on its way to a board or controller |
//! | `frame_arena` | the bytes of frames in flight |
//! | `source`, [`TbfParameters`] | random bursts or a given release pattern, the shaper and its queue |
//! | [`ConformanceChecker`] | an independent check that what was sent keeps to its token bucket |
//! | `tcp` | bulk transfers over TCP: both ends, their frames and windows |
//! | `capture` | frames on all cables and messages of control sessions, for a caller that asks for them |
//! | `flow` | identity of frames, taps, records |
//! | `controller` | the far end of a control session that needs no cable |
//! | `controller_host` | a controller on the control network: MAC and IP address, TCP |
#![forbid(unsafe_code)]

mod bucket;
mod capture;
mod conformance;
mod controller;
mod controller_host;
mod device;
mod error;
mod flow;
mod frame_arena;
mod inbox;
mod link;
mod network;
mod prefetch;
mod queue;
mod random;
mod result;
mod run;
mod schedule;
mod source;
mod steps;
mod tcp;

pub use bucket::TokenBucket;
pub use capture::{CapturedFrame, CapturedSegment};
pub use conformance::ConformanceChecker;
pub use controller::Pace;
pub use controller_host::ControllerConfig;
pub use device::{
    DeviceProfile, GenericSwitchProfile, LinuxSwitchProfile, SwitchConfig, SwitchProfile,
    BANANA_PI_R1,
};
pub use error::Error;
pub use flow::{FlowCounters, LOST};
pub use network::Network;
pub use queue::{ClassConfig, DropsConfig, HtbConfig, PolicerConfig, SchedulerConfig, TrtcmConfig};
pub use result::{BoardResult, FlowResult, RunEvent, RunResult};
pub use source::{BurstsConfig, Offered, SourceConfig};
pub use steps::{StepOutput, StepOutputKind};
pub use tcp::{CongestionControl, TcpConfig, TcpResult};
