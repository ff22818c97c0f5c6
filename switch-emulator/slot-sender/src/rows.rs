//! Timestamps of each frame, and the file that keeps them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Stands for an instant that never came.
pub(crate) const NEVER: u64 = u64::MAX;

/// Timestamps of a frame in nanoseconds since 1970. Written as little-endian 64-bit words, this order, -1 for never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Its slot begins.
    pub(crate) due: u64,
    /// The source handed it over.
    pub(crate) begun: u64,
    /// The kernel had taken it.
    pub(crate) done: u64,
    /// The destination had it.
    pub(crate) received: u64,
}

/// Beginnings since 1970, and durations.
pub(crate) type Spans = Vec<(u64, u64)>;

/// Writes the rows to a file.
pub(crate) fn write(path: &Path, rows: &[Row]) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    for row in rows {
        for word in [row.due, row.begun, row.done, row.received] {
            file.write_all(&word.to_le_bytes())?;
        }
    }
    file.flush()
}
