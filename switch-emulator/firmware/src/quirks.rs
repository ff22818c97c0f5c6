//! Whether the board deviates from OpenFlow 1.0.1 and 1.3.4 as its firmware does. `docs/quirks.md` lists the deviations.

use serde::{Deserialize, Serialize};

/// Which behaviour a board shows where firmware and specification differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quirks {
    /// What the firmware 0.84 does.
    #[default]
    Firmware,
    /// What OpenFlow 1.0.1 asks, and 1.3.4.
    Spec,
}

impl Quirks {
    /// Whether the firmware's deviation with this number (1 to 83, 190 to 202) is shown. Those of 1.3 (84 to 189) are all
    /// shown or none: the correct 1.3 switch is another one (`openflow13::standard`).
    ///
    /// Every place that deviates asks here by number, so that this is the one place that decides. Where one algorithm
    /// replaces another and several deviations go with it, the place asks for one of them: 10 for reading the stream, 14
    /// for sending, 37 for `FLOW_MOD`, 51 for timeouts, 61 for matching, 74 for actions.
    #[must_use]
    pub const fn has(self, number: u8) -> bool {
        debug_assert!(matches!(number, 1..=83 | 190..=202));
        match self {
            Self::Firmware => true,
            // What the specification leaves open, or how the board is built: signs of life, TCP, links, buffers.
            Self::Spec => matches!(
                number,
                7 | 16 | 17 | 20 | 22 | 78 | 81 | 83 | 196 | 200 | 202
            ),
        }
    }
}
