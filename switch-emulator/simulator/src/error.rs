//! Errors of a network's description.

use thiserror::Error;

/// Wrong input; its text is one line that names the fault, its place and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// A number outside of its range.
    #[error("{name} is {value}: give a number in {range}")]
    Value {
        /// The argument.
        name: &'static str,
        /// The value.
        value: String,
        /// The allowed range.
        range: String,
    },
    /// A name that no board or host has, or that one has already.
    #[error("{0}")]
    Name(String),
    /// A port that does not exist, or is in use already.
    #[error("{0}")]
    Port(String),
    /// Settings that no board can have.
    #[error("board {name:?}: {reason}")]
    Board {
        /// The board's name.
        name: String,
        /// Fault and remedy.
        reason: String,
    },
    /// A source that could not send.
    #[error("flow {flow}: {reason}")]
    Source {
        /// The flow's identifier.
        flow: u32,
        /// Why, and how to mend it.
        reason: String,
    },
    /// A call at the wrong moment.
    #[error("{0}")]
    Order(String),
}

impl Error {
    /// Refuses a `value` that is not a number in `least ..= most`.
    pub(crate) fn check(name: &'static str, value: f64, least: f64, most: f64) -> Result<(), Self> {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(Self::Value {
                name,
                value: value.to_string(),
                range: format!("{least} .. {most}"),
            })
        }
    }
}
