//! What waits for the CPU.

use crate::time::Instant;

/// What came by the TCP session with the controller.
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

/// What the main loop finds next.
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
    /// What the console's trace calls it, if it logs such work.
    pub(crate) const fn traced(self) -> Option<&'static str> {
        match self {
            Self::Frame => Some("frame"),
            Self::Control => Some("controller"),
            Self::Stack | Self::Console | Self::Tick => None,
        }
    }
}
