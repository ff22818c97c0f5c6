//! Flag for the data thread that other threads have work for it.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::sync::Arc;

/// Whether other threads have something for the data thread, so that it need not look at every board's channels.
#[derive(Debug, Clone, Default)]
pub struct PendingFlag(Arc<AtomicBool>);

impl PendingFlag {
    /// Sets the flag after something was put into a channel.
    pub fn set(&self) {
        self.0.store(true, Release);
    }

    /// Clears the flag. Returns whether it was set.
    #[must_use]
    pub fn take(&self) -> bool {
        // A plain load first: it costs nothing as long as nothing comes.
        self.0.load(Relaxed) && self.0.swap(false, AcqRel)
    }
}
