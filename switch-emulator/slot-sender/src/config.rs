//! The configuration file of `zodiac-fx slots`.

use std::fs;
use std::path::{Path, PathBuf};

use live_host::error::StartError;
use live_host::realtime::{check_cpu, Scheduling};
use serde::Deserialize;
use zodiac_firmware::Duration;

use crate::clock::NS_PER_S;
use crate::frame::{bytes_of, HEADERS_BYTES, PAYLOAD_BYTES, PORTS_AT};

/// Maximum number of frames of a run that keeps a row of each.
const MAX_FRAMES: u64 = 20_000_000;
const MAX_PERIOD_NS: u64 = 1_000 * NS_PER_S;

/// Configuration of a run (TOML).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsConfig {
    /// How frames get to the network, and from it.
    pub path: FramePath,
    /// Default period of a flow.
    pub period_ns: u64,
    /// How many such periods a run has; without them it goes on until SIGTERM or SIGINT.
    pub periods: Option<u64>,
    /// When the run begins, in nanoseconds since 1970; periods are counted from then. If absent, the run begins soon, and
    /// periods are counted from 1970.
    pub start_ns: Option<u64>,
    /// So long before a slot the sender wakes up and looks at the clock; 0: the timer alone decides.
    pub watch_ns: u64,
    /// Core of the source; without it the kernel chooses.
    pub cpu: Option<usize>,
    /// How the source is scheduled.
    pub scheduling: Scheduling,
    /// A longer gap between two looks at the clock is a stall.
    pub stall_threshold_us: u64,
    /// Where the rows are written, if anywhere: see [`Row`].
    pub rows: Option<PathBuf>,
    /// Network namespace of the destinations, as a file; without it the source's own.
    pub destination_namespace: Option<PathBuf>,
    /// Flows to send.
    #[serde(rename = "flow", default)]
    pub flows: Vec<FlowConfig>,
}

/// How frames get to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FramePath {
    /// UDP sockets of the kernel; the destination waits for what comes.
    Sockets,
    /// UDP sockets with a transmission time for each frame (`SO_TXTIME`, `CLOCK_TAI`): the interface's queue ETF holds
    /// the frame until then. The program hands it over when it wakes up.
    TimedSockets,
    /// Rings of packet sockets; the destination looks all the time.
    PacketRing,
}

/// One flow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Interface by which it leaves.
    pub source: String,
    /// Network namespace of that interface, as a file; without it the program's own.
    pub namespace: Option<PathBuf>,
    /// Interface by which it arrives, if that is on this machine, too: then for all flows.
    pub destination: Option<String>,
    /// When its slot begins, after each whole period of its own.
    pub offset_ns: u64,
    /// From one of its frames to the next, if not as the others'.
    pub period_ns: Option<u64>,
    /// Flow number in its frames, from 0; by default its index in this list.
    pub number: Option<u32>,
    /// The frame without FCS, in hexadecimal digits: Ethernet, IPv4, UDP.
    pub frame: String,
}

impl SlotsConfig {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// One line: what is wrong, where, and how to mend it.
    pub fn load(path: &Path) -> Result<Self, StartError> {
        let wrong =
            |what: String| StartError::new(format!("configuration {}: {what}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let config: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        config.check().map_err(wrong)?;
        Ok(config)
    }

    pub(crate) fn receives(&self) -> bool {
        self.flows.iter().any(|flow| flow.destination.is_some())
    }

    pub(crate) fn period_of(&self, flow: &FlowConfig) -> u64 {
        flow.period_ns.unwrap_or(self.period_ns)
    }

    /// Rows of a run: as many for each flow as the quickest one needs.
    fn frames(&self, periods: u64) -> u64 {
        let quickest = self.flows.iter().map(|flow| self.period_of(flow)).min();
        let duration_ns = periods.saturating_mul(self.period_ns);
        let of_one = duration_ns.div_ceil(quickest.unwrap_or(self.period_ns));
        of_one.saturating_mul(self.flows.len() as u64)
    }

    /// Returns how many rows are kept: those of all frames of a run, or none.
    pub(crate) fn rows_kept(&self) -> usize {
        let periods = self
            .periods
            .filter(|_| self.rows.is_some() || self.receives());
        periods.map_or(0, |periods| self.frames(periods) as usize)
    }

    pub(crate) fn stall_threshold(&self) -> Duration {
        Duration::from_micros(self.stall_threshold_us)
    }

    fn check(&self) -> Result<(), String> {
        let periods = self.flows.iter().filter_map(|flow| flow.period_ns);
        for period_ns in periods.chain([self.period_ns]) {
            if !(1_000..=MAX_PERIOD_NS).contains(&period_ns) {
                return Err(format!(
                    "period_ns: choose 1000 to {MAX_PERIOD_NS}, not {period_ns}"
                ));
            }
        }
        if self.flows.is_empty() {
            return Err("flow: nothing is sent; add a [[flow]]".into());
        }
        match self.periods {
            Some(periods) if periods == 0 || self.frames(periods) > MAX_FRAMES => {
                return Err(format!("periods: choose 1 to {MAX_FRAMES} frames in all"));
            }
            None if self.rows.is_some() || self.receives() => {
                return Err("periods: say how many there are: each frame gets a row".into());
            }
            _ => {}
        }
        if let Some(cpu) = self.cpu {
            check_cpu(cpu).map_err(|error| error.to_string())?;
        }
        for flow in &self.flows {
            let who = &flow.source;
            if flow.offset_ns >= self.period_of(flow) {
                return Err(format!(
                    "flow from {who}: offset_ns: choose less than period_ns"
                ));
            }
            if self.receives() && flow.number.is_some() {
                return Err(format!(
                    "flow from {who}: number: is its place where frames are received; leave it out"
                ));
            }
            let frame = bytes_of(&flow.frame).ok_or_else(|| {
                format!("flow from {who}: frame: give two hexadecimal digits for each byte")
            })?;
            if frame.len() < HEADERS_BYTES + PAYLOAD_BYTES || frame[12..14] != [8, 0] {
                return Err(format!(
                    "flow from {who}: frame: give Ethernet, IPv4, UDP and at least {PAYLOAD_BYTES} bytes"
                ));
            }
            if flow.destination.is_some() != self.receives() {
                return Err(format!(
                    "flow from {who}: destination: give all flows one, or none"
                ));
            }
            let port = &frame[PORTS_AT + 2..PORTS_AT + 4];
            let first = bytes_of(&self.flows[0].frame).unwrap_or_default();
            if self.receives()
                && self.path != FramePath::PacketRing
                && first.get(PORTS_AT + 2..PORTS_AT + 4) != Some(port)
            {
                return Err(format!(
                    "flow from {who}: frame: one socket receives for all flows: give all one UDP destination port"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn config(path: &str, offsets_ns: &[u64]) -> Result<SlotsConfig, String> {
        let digits = ["00".repeat(12), "0800".into(), "00".repeat(46)].concat();
        let flows: Vec<_> = offsets_ns
            .iter()
            .map(|offset_ns| {
                format!(
                    "[[flow]]\nsource = \"a\"\ndestination = \"b\"\noffset_ns = {offset_ns}\nframe = \"{digits}\"\n"
                )
            })
            .collect();
        let flows = flows.concat();
        let text = format!(
            "path = \"{path}\"\nperiod_ns = 1_000_000\nperiods = 2\nwatch_ns = 0\nscheduling = \"other\"\n\
             stall_threshold_us = 50\nrows = \"/dev/null\"\n{flows}"
        );
        let config: SlotsConfig = toml::from_str(&text).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }
    #[test]
    fn what_cannot_be_sent_is_refused_in_one_line() {
        for (path, offsets_ns, expected) in [
            (
                "sockets",
                &[1_000_000][..],
                "offset_ns: choose less than period_ns",
            ),
            ("sockets", &[], "add a [[flow]]"),
            ("dpdk", &[0], "unknown variant"),
        ] {
            let error = config(path, offsets_ns).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(config("sockets", &[0]).is_ok());
    }

    #[test]
    fn another_number_is_only_of_frames_that_are_received_elsewhere() {
        let mut config = config("packet-ring", &[0]).unwrap();
        config.flows[0].number = Some(7);
        assert!(config.check().unwrap_err().contains("number: is its place"));
        config.flows[0].destination = None;
        config.check().unwrap();
    }

    #[test]
    fn a_run_without_end_keeps_no_rows() {
        let mut config = config("packet-ring", &[0]).unwrap();
        config.flows[0].destination = None;
        config.periods = None;
        assert!(config
            .check()
            .unwrap_err()
            .contains("each frame gets a row"));
        config.rows = None;
        config.check().unwrap();
        assert_eq!(config.rows_kept(), 0);
    }
}
