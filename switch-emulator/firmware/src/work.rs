//! Work that waits for the CPU.

use crate::time::Instant;

/// Input from the TCP session with the controller.
#[derive(Debug)]
pub(crate) enum FromController {
    Connected,
    Disconnected,
    Finished,
    Reset,
    Segment {
        /// When it arrived at the native port.
        arrived: Instant,
        payload: Vec<u8>,
    },
}

/// Kind of the work that the main loop finds next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Frame,
    Control,
    /// The IP stack, though nothing has come.
    Stack,
    Console,
    Tick,
}

impl Work {
    /// Returns its name in the console's trace, or `None` if it is not logged.
    pub(crate) const fn traced(self) -> Option<&'static str> {
        match self {
            Self::Frame => Some("frame"),
            Self::Control => Some("controller"),
            Self::Stack | Self::Console | Self::Tick => None,
        }
    }
}
