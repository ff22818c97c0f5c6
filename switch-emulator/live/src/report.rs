//! The report of a run, as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use zodiac_firmware::Counters;

use live_host::histogram::Quantiles;

/// Stalls that are listed; further ones are only counted.
pub const MAX_STALLS: usize = 100_000;
/// Events that are listed; further ones are only counted.
pub const MAX_EVENTS: usize = 10_000;

/// How a run went. Instants are `CLOCK_REALTIME` nanoseconds, as the kernel's stamps of captured packets.
#[derive(Debug, Serialize)]
pub struct Report {
    /// By name.
    pub boards: BTreeMap<String, BoardReport>,
    /// Intended against actual departure of frames that no stall delayed.
    pub lateness_ns: Quantiles,
    /// Lateness of departures that a stall delayed.
    pub lateness_in_stalls_ns: Quantiles,
    /// When the data thread did not run or did not get its frames.
    pub stalls: StallReport,
    /// Duration of the data thread's passes.
    pub loop_ns: Quantiles,
    /// How the data thread was scheduled, as far as the kernel permitted.
    pub scheduling: String,
    /// Lead of departures.
    pub send_lead_ns: u64,
    /// Frames that came to an interface and were lost because the data thread did not fetch them in time.
    pub interface_losses: BTreeMap<String, u64>,
    /// Events, in order.
    pub events: Vec<EventReport>,
    /// Events that did not fit in the list, and messages lost on the way to this report.
    pub events_lost: u64,
}

/// One board.
#[derive(Debug, Default, Serialize)]
pub struct BoardReport {
    /// Counters of its frames.
    pub counters: Counters,
    /// Whether its controller's connection stands.
    pub connected: bool,
    /// Its entries as messages of `OpenFlow`, in hexadecimal, if `process.flow_statistics` asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow_statistics: Vec<String>,
}

/// When the data thread did not run, or got a frame late that the kernel had stamped.
#[derive(Debug, Default, Serialize)]
pub struct StallReport {
    /// How many there were.
    pub count: u64,
    /// Shorter gaps do not count.
    pub threshold_ns: u64,
    /// The longest.
    pub worst_ns: u64,
    /// Beginning and duration.
    pub list: Vec<(u64, u64)>,
    /// Whether there were more than the list holds.
    pub truncated: bool,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventReport {
    /// When.
    pub at_ns: u64,
    /// Whose, or `None` for the program's own.
    pub board: Option<String>,
    /// The fault, and how to mend it.
    pub text: String,
}

impl Report {
    /// Writes the report so that a reader sees the old or the new one, never a part.
    ///
    /// # Errors
    /// The folder does not exist or cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        write_atomically(path, &text)
    }
}

/// Writes a file beside the target, then renames it.
///
/// # Errors
/// As for writing and renaming.
pub fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    fs::write(&beside, content)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}
