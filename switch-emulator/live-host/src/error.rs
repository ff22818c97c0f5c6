//! Errors that end the program.

use std::fmt;

/// Reason why the program cannot start: one line that names the fault, its place and its remedy. Exit status 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    /// Creates an error with this line; line breaks from below are joined, so that it stays one line.
    pub fn new(line: impl fmt::Display) -> Self {
        let line = line.to_string();
        Self(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Why the boards do not run, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// They could not start: wrong input or a machine that is not ready. Exit status 2.
    #[error(transparent)]
    Start(#[from] StartError),
    /// They stopped by themselves. Exit status 1.
    #[error("{0}")]
    Ended(String),
}
