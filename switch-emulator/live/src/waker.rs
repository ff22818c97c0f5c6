//! Wakes a thread that waits for file descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{eventfd, EventfdFlags};

/// Wakes a thread; copies wake the same one.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Returns a new one; the thread waits until its descriptor can be read.
    ///
    /// # Errors
    /// No free file descriptor.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self(Arc::new(eventfd(0, flags)?)))
    }

    /// Wakes the thread, now or when it next wants to sleep.
    pub fn wake(&self) {
        // Fails only if the counter is full: then the thread is awake.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Forgets that it was woken.
    pub fn reset(&self) {
        // There is nothing to read if something else ended the waiting.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
