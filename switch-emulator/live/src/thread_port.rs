//! Channels from the data thread to a thread of ordinary priority and back, which never make the data thread wait.

use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::waker::Waker;

/// The data thread's end: of commands `C` to the other thread, and of what that tells, `N`.
#[derive(Debug)]
pub struct ThreadPort<C, N> {
    commands: Producer<C>,
    notices: Consumer<N>,
    waker: Waker,
}

impl<C, N> ThreadPort<C, N> {
    /// Returns a pair of channels, each with room for `messages`: the data thread's end, and those of the thread that
    /// `waker` wakes.
    #[must_use]
    pub fn new(messages: usize, waker: Waker) -> (Self, Consumer<C>, Producer<N>) {
        let (to_thread, commands) = RingBuffer::new(messages);
        let (to_data, notices) = RingBuffer::new(messages);
        let port = Self {
            commands: to_thread,
            notices,
            waker,
        };
        (port, commands, to_data)
    }

    /// Hands over a command; never waits.
    ///
    /// # Errors
    /// The command, if the other thread is too far behind.
    pub fn command(&mut self, command: C) -> Result<(), C> {
        let result = self
            .commands
            .push(command)
            .map_err(|PushError::Full(command)| command);
        self.waker.wake();
        result
    }

    /// Returns the next notice, if any.
    pub fn notice(&mut self) -> Option<N> {
        self.notices.pop().ok()
    }
}
