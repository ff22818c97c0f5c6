//! The settings of a switch that is no Zodiac FX.

use std::collections::BTreeMap;

use serde::Deserialize;
use zodiac_firmware::MacAddress;

use crate::queue::SchedulerConfig;

/// Settings of a switch that is no Zodiac FX.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchConfig {
    /// Its MAC address; with two zero bytes in front it is the datapath identifier.
    pub mac: MacAddress,
    /// Of a generic switch: what stands before a port, by its number; a single queue where nothing is said.
    pub schedulers: BTreeMap<u8, SchedulerConfig>,
    /// Of a generic switch: the rate of its ports, if it is another than the profile's.
    pub link_rate_bps: Option<u64>,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            mac: MacAddress([0x02, 0, 0, 0, 0, 0]),
            schedulers: BTreeMap::new(),
            link_rate_bps: None,
        }
    }
}
