//! A run: source, destination, and the summary of both.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration as Span;

use live_host::error::{RunError, StartError};
use live_host::histogram::Quantiles;
use live_host::realtime::{prepare_thread, UnlimitedRuntime};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::clock::now;
use crate::config::SlotsConfig;
use crate::frame::{bytes_of, FLOW_AT, HEADERS_BYTES};
use crate::receiver::SlotReceiver;
use crate::rows::{write, Spans};
use crate::schedule::SlotSchedule;
use crate::sender::SlotSender;
use crate::tx_path::TxPath;

/// From the last slot until the destination ends.
const DRAIN: Span = Span::from_millis(200);

/// Summary of a run (JSON on standard output).
#[derive(Debug, Serialize)]
pub struct RunSummary {
    /// How the source was scheduled, as far as the kernel permitted.
    pub scheduling: String,
    /// Why that is less than what was asked for, if it is.
    pub warning: Option<String>,
    /// How long after the beginnings of their slots frames were handed over, and how many were.
    pub late_ns: Quantiles,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Beginning since 1970, and duration: the source was kept from running.
    pub stalls: Spans,
    /// Stalls of a destination that polls.
    pub destination_stalls: Spans,
}

/// Sends and receives, and writes the rows. Returns a summary.
///
/// # Errors
/// Interfaces or memory cannot be had, or a thread failed.
pub fn run(config: &SlotsConfig) -> Result<RunSummary, RunError> {
    let _unlimited = UnlimitedRuntime::obtain();
    let frames: Vec<Vec<u8>> = config
        .flows
        .iter()
        .enumerate()
        .filter_map(|(place, flow)| {
            let mut frame = bytes_of(&flow.frame)?;
            let number = flow.number.unwrap_or(place as u32) + 1;
            frame[HEADERS_BYTES..][FLOW_AT..FLOW_AT + 4].copy_from_slice(&number.to_be_bytes());
            Some(frame)
        })
        .collect();
    let tx_paths = config
        .flows
        .iter()
        .zip(&frames)
        .map(|(flow, frame)| TxPath::open(config.path, flow, frame))
        .collect::<Result<Vec<_>, _>>()?;
    let finished = Arc::new(AtomicBool::new(false));
    let ended = ended_by_signal()
        .map_err(|error| StartError::new(format!("cannot watch signals: {error}")))?;
    let destination = config
        .receives()
        .then(|| SlotReceiver::open_in_namespace(config, &frames))
        .transpose()?
        .map(|destination| destination.start(Arc::clone(&finished)));
    let mut source = SlotSender::new(config, tx_paths, frames, ended);
    let (cpu, scheduling) = (config.cpu, config.scheduling);
    let schedule = SlotSchedule::new(config, now().as_nanos())?;
    let watch_ns = config.watch_ns;
    let rows_kept = config.rows_kept();
    let sending = thread::spawn(move || -> Result<_, StartError> {
        let obtained = prepare_thread(cpu, scheduling, false)?;
        let rows = source.send(schedule, watch_ns, rows_kept);
        Ok((obtained, rows, source))
    });
    let sent = sending.join();
    thread::sleep(DRAIN);
    finished.store(true, Ordering::Release);
    let failed = |_| RunError::Ended("a thread failed; report this as a bug".into());
    let (received, destination_stalls) = destination
        .map(|destination| destination.join().map_err(failed))
        .transpose()?
        .unwrap_or_default();
    let ((scheduling, warning), mut rows, source) = sent.map_err(failed)??;
    for (row, received) in rows.iter_mut().zip(received) {
        row.received = received;
    }
    if let Some(file) = &config.rows {
        write(file, &rows).map_err(|error| {
            RunError::Ended(format!("cannot write {}: {error}", file.display()))
        })?;
    }
    Ok(RunSummary {
        scheduling,
        warning,
        late_ns: source.late_ns.quantiles(),
        refused: source.refused,
        stalls: source.stalls,
        destination_stalls,
    })
}

/// Is set when the program shall end; a second signal ends it at once.
fn ended_by_signal() -> io::Result<Arc<AtomicBool>> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&ended))?;
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    Ok(ended)
}
