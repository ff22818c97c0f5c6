//! How long frames take that the integrated switch forwards by itself.

use crate::profile::Profile;
use crate::random::SplitMix;
use crate::time::Duration;

/// Draws a time for each frame, uniformly from the whole nanoseconds that the profile allows.
#[derive(Clone, Debug)]
pub(crate) struct BridgingDelay {
    shortest: Duration,
    /// How many times there are to choose from.
    choices: u64,
    random: SplitMix,
}

impl BridgingDelay {
    pub(crate) fn new(profile: &Profile, random: SplitMix) -> Self {
        let chip = &profile.integrated_switch;
        let jitter_ps = chip.bridging_jitter_ps.unwrap_or(0) as i64;
        let jitter = Duration::from_picos_rounded(jitter_ps);
        Self {
            shortest: Duration::from_picos_rounded(chip.transit_ps) - jitter,
            choices: 2 * jitter.as_nanos() + 1,
            random,
        }
    }

    pub(crate) fn draw(&mut self) -> Duration {
        self.shortest + Duration::from_nanos(self.random.below(self.choices))
    }
}
