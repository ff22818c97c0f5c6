//! Zodiac FX boards on real interfaces, in real time.
//!
//! One process carries one board or several. A busy-polling *data thread* reads frames with their kernel stamps, runs
//! the firmware of `zodiac-firmware` and hands each frame to the kernel at the instant that the firmware computed from
//! its arrival, so that a late wake-up never adds up over several hops. Everything that may block is on threads of
//! ordinary priority, joined to it by bounded, wait-free channels.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | the configuration file |
//! | [`supervisor`] | starts the threads, watches signals |
//! | [`data_plane`] | the data thread |
//! | [`real_time`] | how a data thread keeps time: arrivals, departures, rests, stalls |
//! | [`boards`], [`receive_port`], [`timer_queue`] | boards and links in order of time; no I/O |
//! | [`control`], [`tcp_info`], [`stream`] | connections to controllers; cutting their stream into segments |
//! | [`console`], [`pseudo_terminal`], [`eeprom`] | the boards' serial consoles, what they save |
//! | [`telemetry`], [`journal`], [`report`] | what is measured and told |
//! | [`host_noise`] | how often the host keeps such a thread from running, measured beforehand |
//! | [`delay_line`] | departure times for the frames of a software switch |
//! | [`data_port`], [`readiness`] | interfaces: finding one, and those that have frames, among many |
//! | [`link_watch`] | whether they have a carrier |
//! | [`thread_port`], [`pending_flag`], [`waker`] | channels between threads, and telling that something waits there |
//! | [`checksum`], [`segmentation`], [`clock`], [`departure_lead`], [`send_lead`], [`cache_warmer`], [`live_host`] | the operating system |
//!
//! The system's limit `kernel.sched_rt_runtime_us` is set to -1 while the program runs, if that is permitted, and
//! restored at its end (not after SIGKILL): without it the kernel refuses to pin a `SCHED_DEADLINE` thread.

pub mod boards;
pub mod cache_warmer;
pub mod checksum;
pub mod clock;
pub mod config;
pub mod console;
pub mod control;
pub mod data_plane;
pub mod data_port;
pub mod delay_line;
pub mod departure_lead;
pub mod eeprom;
pub mod flow_statistics;
pub mod host_noise;
pub mod journal;
pub mod link_watch;
pub mod pending_flag;
pub mod pseudo_terminal;
pub mod readiness;
pub mod real_time;
pub mod receive_port;
pub mod report;
pub mod segmentation;
pub mod send_lead;
pub mod stream;
pub mod supervisor;
pub mod tcp_info;
pub mod telemetry;
pub mod thread_port;
pub mod timer_queue;
pub mod waker;
