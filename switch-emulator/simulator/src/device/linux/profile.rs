//! Profile of a software switch on Linux.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zodiac_firmware::{check, number, section, ProfileError, Sourced, Tolerance, ValueRule};

use crate::device::MAX_PORTS;

/// The profile of the Banana Pi R1 that comes with the crate (`profiles/banana-pi-r1.toml`).
pub const BANANA_PI_R1: &str = include_str!("../../../../profiles/banana-pi-r1.toml");

/// Format of profile files that this crate reads.
const FORMAT: u32 = 1;
/// Longest span in a profile, 100 s: sums with instants stay far from overflow.
const MAX_NS: u64 = 100_000_000_000;

/// Profile of a software switch on Linux. Lengths count the frame with its FCS, without preamble.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxSwitchProfile {
    #[schemars(extend("const" = 1))]
    format: u32,
    kind: LinuxKind,
    /// Name by which files and commands refer to the device.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Front ports and links.
    pub ports: LinuxPorts,
    /// The chip between front ports and CPU.
    pub switch_chip: SwitchChip,
    /// The flow table.
    pub table: LinuxTable,
    /// CPU time of a frame.
    pub cpu: LinuxCpu,
    /// Interference.
    pub interference: InterferenceProfile,
    /// Tolerances of guarantees beyond these numbers. The simulator does not use them.
    pub tolerance: Option<Tolerance>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
enum LinuxKind {
    LinuxSwitch,
}

section! {
    /// Front ports and links.
    pub struct LinuxPorts {
        /// Number of front ports.
        count: u8,
        /// Rate of the front ports, and of the link between switch chip and CPU in each direction.
        link_rate_bps: u64,
    }
}

section! {
    /// The chip between front ports and CPU.
    pub struct SwitchChip {
        /// From a frame's last bit in to its first bit out, on the way in and again on the way out.
        transit_ns: u64,
        /// Frame memory: bounds what waits for the link to the CPU.
        buffer_bytes: u64,
        /// Tag that names the port on the link to the CPU.
        tag_bytes: u64,
    }
}

section! {
    /// The flow table.
    pub struct LinuxTable {
        /// Entries that it holds.
        entries: u64,
    }
}

section! {
    /// CPU time of a frame, and the number of frames that wait for the CPU.
    pub struct LinuxCpu {
        /// Each frame: fixed part.
        base_ps: u64,
        /// Each frame: part that grows with its length.
        per_byte_ps: u64,
        /// From a frame's arrival until an idle CPU takes it.
        interrupt_ns: u64,
        /// Frames that one poll takes at most.
        poll_budget_frames: u64,
        /// Ending a poll that has used its budget and beginning the next one.
        repoll_ns: u64,
        /// Frames that wait for the CPU.
        ring_frames: u64,
        /// Frames that wait for the link from the CPU.
        transmit_frames: u64,
    }
}

section! {
    /// Interruptions of forwarding.
    pub struct InterferenceProfile {
        /// Time between two timer ticks.
        tick_period_ns: u64,
        /// Time that a tick takes.
        tick_ns: u64,
        /// Mean time from the beginning of a stall to the beginning of the next one.
        stall_gap_ns: u64,
        /// Shortest stall.
        stall_least_ns: u64,
        /// Longest stall.
        stall_most_ns: u64,
        /// Exponent of the stalls' distribution: the smaller, the heavier its tail.
        stall_shape: f64,
    }
}

impl LinuxSwitchProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not the profile of such a switch.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        let rules = [profile.rules(), profile.cpu_rules()].concat();
        check(
            rules
                .into_iter()
                .chain(profile.tolerance.iter().flat_map(Tolerance::rules)),
        )?;
        Ok(profile)
    }

    fn rules(&self) -> Vec<ValueRule> {
        let (chip, rate_bps) = (&self.switch_chip, self.ports.link_rate_bps);
        vec![
            (
                self.format == FORMAT,
                "format",
                "this simulator reads format 1",
            ),
            (
                (1..=MAX_PORTS).contains(&self.ports.count),
                "ports.count",
                "choose 1 to 64",
            ),
            (
                rate_bps != 0 && 8_000_000_000 % rate_bps == 0,
                "ports.link_rate_bps",
                "a byte must take a whole number of nanoseconds",
            ),
            (
                chip.transit_ns <= MAX_NS,
                "switch_chip.transit_ns",
                "choose at most 100 s",
            ),
            (
                (1_536..=1_000_000_000).contains(&chip.buffer_bytes),
                "switch_chip.buffer_bytes",
                "choose room for at least one frame, 1536, and at most 1000000000",
            ),
            (
                chip.tag_bytes <= 64,
                "switch_chip.tag_bytes",
                "choose at most 64",
            ),
            (
                (1..=1_000_000).contains(&self.table.entries),
                "table.entries",
                "choose 1 to 1000000",
            ),
        ]
    }

    fn cpu_rules(&self) -> Vec<ValueRule> {
        let (cpu, interference) = (&self.cpu, &self.interference);
        let stalls_ns = 1..=interference.stall_most_ns.min(MAX_NS);
        vec![
            (
                cpu.base_ps <= 1_000 * MAX_NS / 2,
                "cpu.base_ps",
                "choose at most 50 s",
            ),
            (
                cpu.per_byte_ps <= 1_000_000_000,
                "cpu.per_byte_ps",
                "choose at most 1 ms",
            ),
            (
                cpu.interrupt_ns <= MAX_NS,
                "cpu.interrupt_ns",
                "choose at most 100 s",
            ),
            (
                cpu.poll_budget_frames >= 1,
                "cpu.poll_budget_frames",
                "choose at least 1",
            ),
            (
                cpu.repoll_ns <= MAX_NS,
                "cpu.repoll_ns",
                "choose at most 100 s",
            ),
            (
                (1..=1_000_000).contains(&cpu.ring_frames),
                "cpu.ring_frames",
                "choose 1 to 1000000",
            ),
            (
                (1..=1_000_000).contains(&cpu.transmit_frames),
                "cpu.transmit_frames",
                "choose 1 to 1000000",
            ),
            (
                (1..=MAX_NS).contains(&interference.tick_period_ns),
                "interference.tick_period_ns",
                "choose 1 ns to 100 s",
            ),
            (
                // Otherwise nothing would ever be forwarded.
                interference.tick_ns <= interference.tick_period_ns / 2,
                "interference.tick_ns",
                "choose at most half the period",
            ),
            (
                stalls_ns.contains(&interference.stall_least_ns),
                "interference.stall_least_ns",
                "choose at least 1 and at most stall_most_ns",
            ),
            (
                interference.stall_most_ns <= MAX_NS,
                "interference.stall_most_ns",
                "choose at most 100 s",
            ),
            (
                (0.1..=100.0).contains(&interference.stall_shape),
                "interference.stall_shape",
                "choose 0.1 to 100",
            ),
            (
                interference.stall_gap_ns > 2 * interference.stall_mean_ns(),
                "interference.stall_gap_ns",
                "choose more than twice the mean stall",
            ),
        ]
    }
}

impl InterferenceProfile {
    /// Mean length of a stall: that of a Pareto distribution between `stall_least` and `stall_most`.
    #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // spans are below 2^53 ns
    fn stall_mean_ns(&self) -> u64 {
        let (least, most, shape) = (
            self.stall_least_ns as f64,
            self.stall_most_ns as f64,
            self.stall_shape,
        );
        let ratio = least / most;
        if ratio >= 1.0 || (shape - 1.0).abs() < 1e-6 {
            return self.stall_most_ns;
        }
        let mean = least * shape / (shape - 1.0) * (1.0 - libm::pow(ratio, shape - 1.0))
            / (1.0 - libm::pow(ratio, shape));
        libm::ceil(mean) as u64
    }
}
#[cfg(test)]
mod tests;
