//! Wakes a thread that waits for file descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};

/// Wakes a thread; copies wake the same one.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Returns a new one.
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

    /// Waits, in the thread, until it is woken, one of `others` is ready, or the timeout has passed.
    ///
    /// # Errors
    /// The kernel cannot wait for them.
    pub fn wait<'fd>(
        &'fd self,
        others: impl Iterator<Item = PollFd<'fd>>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let timeout = timeout.map(|span| Timespec {
            tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        });
        let mut fds = vec![PollFd::new(&*self.0, PollFlags::IN)];
        fds.extend(others);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // There is nothing to read if something else ended the waiting.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
        Ok(())
    }
}
