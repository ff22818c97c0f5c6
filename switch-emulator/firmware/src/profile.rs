//! The numbers of a device, read from TOML.
//!
//! A number is either plain or a table `{ value, source, range, note }` that says where it comes from. Only
//! the value is kept here; the rest is checked, so that a slip in the file does not pass unseen.

use serde::Deserialize;

mod console;
mod control;
mod number;
mod openflow13;

pub use console::ConsoleCosts;
pub use control::{ControlCosts, Housekeeping};
pub use number::number;
pub use openflow13::{FieldCost, OpenFlow13Costs};

/// The profile of the Zodiac FX that comes with the crate (`profiles/zodiac-fx.toml`).
pub const ZODIAC_FX: &str = include_str!("../../profiles/zodiac-fx.toml");

/// Format of profile files that this crate reads.
const FORMAT: u32 = 1;

/// A profile that cannot be used. Its `Display` is one line: where, what, how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML of the expected form.
    #[error("profile, line {line}, column {column}: {text}: {reason}")]
    Syntax {
        /// Line of the mistake, from 1.
        line: usize,
        /// Column of the mistake, from 1.
        column: usize,
        /// The line itself; it holds the key.
        text: String,
        /// The fault.
        reason: String,
    },
    /// A value that the emulator cannot work with.
    #[error("profile, {key}: {reason}")]
    Value {
        /// Dotted key.
        key: &'static str,
        /// The remedy.
        reason: &'static str,
    },
}

impl ProfileError {
    /// Returns where in `text` reading it went wrong.
    #[must_use]
    pub fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.get(..at).unwrap_or("");
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Syntax {
            line: before.matches('\n').count() + 1,
            column: at - start + 1,
            text: text[start..]
                .lines()
                .next()
                .unwrap_or("")
                .trim()
                .chars()
                .take(60)
                .collect(),
            reason: error.message().replace('\n', "; "),
        }
    }
}

/// Returns the kind of device that a profile describes; a profile without a kind describes a Zodiac FX.
///
/// # Errors
/// [`ProfileError::Syntax`] when the text is not TOML or its kind no text.
pub fn profile_kind(text: &str) -> Result<Option<String>, ProfileError> {
    #[derive(Deserialize)]
    struct FileHeader {
        kind: Option<String>,
    }
    let head: FileHeader =
        toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
    Ok(head.kind)
}

/// Costs and capacities of a device.
///
/// Lengths count the frame with its FCS, without preamble; units are in the names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    format: u32,
    /// Name by which files and commands refer to the device.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Where and when the numbers were measured, if they were.
    pub measurement: Option<Measurement>,
    /// Front ports and links.
    pub ports: PortsProfile,
    /// The chip between front ports and CPU.
    pub integrated_switch: IntegratedSwitch,
    /// Pause frames, and what the integrated switch does when it is paused.
    pub flow_control: FlowControlProfile,
    /// Receive buffers of the CPU.
    pub buffer: Buffer,
    /// The flow table.
    pub table: TableProfile,
    /// Time that the CPU spends.
    pub cpu: Cpu,
    /// Tolerances of guarantees beyond these numbers. The emulator does not use them.
    pub tolerance: Option<Tolerance>,
}

/// Tolerances of guarantees: here clocks are exact, and cables as long as a network says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// How slow or fast the device's clocks may be, in millionths.
    #[serde(deserialize_with = "number")]
    pub board_clock_ppm: u64,
    /// How slow or fast the clock of a host may be that sends to it.
    #[serde(deserialize_with = "number")]
    pub sender_clock_ppm: u64,
    /// How long a signal may take through a cable.
    #[serde(deserialize_with = "number")]
    pub cable_ns: u64,
}

/// How a measured profile came about.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Measured device.
    pub device: String,
    /// When the campaign began, as in `2026-11-21`.
    pub date: String,
    /// Version of the program that measured.
    pub commit: String,
    /// Samples of each combination.
    pub samples: u64,
    /// Seed of the instants at which the bench sent.
    pub seed: u64,
}

/// Front ports and links.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortsProfile {
    /// Number of front ports.
    #[serde(deserialize_with = "number")]
    pub count: u64,
    /// Rate of front ports and of the link between integrated switch and CPU.
    #[serde(deserialize_with = "number")]
    pub link_rate_bps: u64,
    /// Preamble and start-of-frame delimiter.
    #[serde(deserialize_with = "number")]
    pub preamble_bytes: u64,
    /// Pause that a link keeps after each frame.
    #[serde(deserialize_with = "number")]
    pub interframe_gap_bytes: u64,
    /// Tag that names the port on the link between integrated switch and CPU.
    #[serde(deserialize_with = "number")]
    pub tail_tag_bytes: u64,
}

/// The chip between front ports and CPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegratedSwitch {
    /// `p_IS`: time from a frame's last bit in to its first bit out, on the way in and again on the way out.
    #[serde(deserialize_with = "number")]
    pub transit_ps: i64,
    /// Frame memory: bounds what waits when several ports bring more than the link to the CPU carries.
    #[serde(deserialize_with = "number")]
    pub buffer_bytes: u64,
    /// Whether a frame keeps its outermost VLAN tag on its way to the CPU.
    #[serde(default)]
    pub cpu_port_tags: CpuPortTags,
}

/// Handling of a frame's 802.1Q tag by the port to the CPU. The firmware's description leaves it open: the port is
/// programmed to remove tags, but this may not apply to frames that OpenFlow ports trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuPortTags {
    /// The CPU gets frames with their tags.
    #[default]
    Kept,
    /// The CPU gets frames without their outermost tag, so that no entry matches it.
    Removed,
}

/// Pause frames, and what the integrated switch does when it is paused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowControlProfile {
    /// How long a pause lasts that the CPU's MAC asks for when it has lost a frame, in units of 512 bit times; 0: it never
    /// asks.
    #[serde(deserialize_with = "number")]
    pub pause_quanta: u64,
    /// The MAC calls the pause off when no more units of the ring than these are in use.
    #[serde(deserialize_with = "number")]
    pub resume_units: u64,
    /// Frames for the paused CPU that the integrated switch holds until it may go on. It throws away further ones.
    #[serde(deserialize_with = "number")]
    pub held_frames: u64,
    /// For how long a frame that is thrown away has taken up the room that frames from the CPU need, in thousandths of
    /// the time in which a frame of its length is received and passed on.
    #[serde(deserialize_with = "number")]
    pub discard_permille: u64,
    /// 1: a pause frame that arrives on a front port stops what would leave by it; 0: it is ignored.
    #[serde(deserialize_with = "number")]
    pub front_ports: u64,
}

/// Receive buffers of the CPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Frames that the CPU itself holds: the one it works on.
    #[serde(deserialize_with = "number")]
    pub packets: u64,
    /// Units of the receive ring.
    #[serde(deserialize_with = "number")]
    pub units: u64,
    /// Size of a unit; a frame occupies whole units.
    #[serde(deserialize_with = "number")]
    pub unit_bytes: u64,
}

/// The flow table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableProfile {
    /// Entries that it holds.
    #[serde(deserialize_with = "number")]
    pub entries: u64,
}

/// Time that the CPU spends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Each frame: fixed part. Contains both transits of the integrated switch and the mean wait for the loop.
    #[serde(deserialize_with = "number")]
    pub base_ps: i64,
    /// Each frame: part that grows with its length.
    #[serde(deserialize_with = "number")]
    pub per_byte_ps: i64,
    /// One idle iteration of the main loop.
    #[serde(deserialize_with = "number")]
    pub loop_ps: i64,
    /// True capacity of the busy CPU, divided by that of equation 6.
    #[serde(deserialize_with = "number")]
    pub capacity_factor: f64,
    /// Table search.
    pub entry: EntryCosts,
    /// Actions of the entry that is used.
    pub action: ActionCosts,
    /// Work that is not caused by frames.
    pub timers: Timers,
    /// Messages of the controller.
    pub control: ControlCosts,
    /// Housekeeping jobs.
    pub housekeeping: Housekeeping,
    /// The serial console; without the table it costs nothing.
    #[serde(default = "ConsoleCosts::free")]
    pub console: ConsoleCosts,
    /// OpenFlow 1.3 where it differs from 1.0. Without the table a board of this profile speaks 1.0 only.
    pub openflow13: Option<OpenFlow13Costs>,
}

/// Table search: an examined entry costs `base` and each field of it that is not a wildcard.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // match fields of OpenFlow 1.0
#[allow(clippy::struct_field_names)] // the unit belongs to the name
pub struct EntryCosts {
    #[serde(deserialize_with = "number")]
    pub base_ps: i64,
    #[serde(deserialize_with = "number")]
    pub in_port_ps: i64,
    #[serde(deserialize_with = "number")]
    pub dl_src_ps: i64,
    #[serde(deserialize_with = "number")]
    pub dl_dst_ps: i64,
    #[serde(deserialize_with = "number")]
    pub dl_vlan_ps: i64,
    #[serde(deserialize_with = "number")]
    pub dl_vlan_pcp_ps: i64,
    #[serde(deserialize_with = "number")]
    pub dl_type_ps: i64,
    #[serde(deserialize_with = "number")]
    pub nw_tos_ps: i64,
    #[serde(deserialize_with = "number")]
    pub nw_proto_ps: i64,
    #[serde(deserialize_with = "number")]
    pub nw_src_ps: i64,
    #[serde(deserialize_with = "number")]
    pub nw_dst_ps: i64,
    #[serde(deserialize_with = "number")]
    pub tp_src_ps: i64,
    #[serde(deserialize_with = "number")]
    pub tp_dst_ps: i64,
    #[serde(deserialize_with = "number")]
    pub skipped_ps: i64,
    #[serde(deserialize_with = "number")]
    pub after_hit_ps: i64,
}

/// Costs of actions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionCosts {
    /// First output of a frame.
    pub output: ActionCost,
    /// Each further output of the same frame.
    pub output_again: ActionCost,
    /// No output at all.
    pub drop: ActionCost,
    /// Rewriting a field without checksum.
    pub set_dl: ActionCost,
    /// Rewriting a field with checksums.
    pub set_checksummed: ActionCost,
    /// Adding or rewriting a VLAN tag.
    pub set_vlan: ActionCost,
    /// Removing a VLAN tag.
    pub strip_vlan: ActionCost,
    /// Finding no VLAN tag to remove.
    pub strip_vlan_untagged: ActionCost,
    /// Sending the frame to the controller.
    pub packet_in: ActionCost,
}

/// `fixed + per_byte * max(l - offset, 0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionCost {
    /// Fixed part.
    #[serde(deserialize_with = "number")]
    pub fixed_ps: i64,
    /// Part that grows with the frame.
    #[serde(deserialize_with = "number")]
    pub per_byte_ps: i64,
    /// Length from which it grows.
    #[serde(deserialize_with = "number")]
    pub offset_bytes: i64,
}

/// Work of the CPU that returns with a period.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timers {
    /// Time between two runs.
    #[serde(deserialize_with = "number")]
    pub period_ns: u64,
    /// Time that a run takes.
    #[serde(deserialize_with = "number")]
    pub cost_ps: i64,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not the profile of a Zodiac FX.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        if profile_kind(text)?.is_some() {
            return Err(ProfileError::Value {
                key: "kind",
                reason: "another kind of device than a Zodiac FX; put it into a simulated network",
            });
        }
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileError> {
        let mut rules = self.rules().into_iter().chain(self.cpu.rules());
        match rules.find(|(holds, ..)| !holds) {
            Some((_, key, reason)) => Err(ProfileError::Value { key, reason }),
            None => Ok(()),
        }
    }

    fn rules(&self) -> [ValueRule; 15] {
        let Self {
            ports,
            integrated_switch,
            flow_control,
            buffer,
            table,
            ..
        } = self;
        let whole_ns = ports.link_rate_bps != 0 && 8_000_000_000 % ports.link_rate_bps == 0;
        let beside_frames = [
            ports.preamble_bytes,
            ports.tail_tag_bytes,
            ports.interframe_gap_bytes,
        ];
        [
            (
                self.format == FORMAT,
                "format",
                "this emulator reads format 1",
            ),
            (
                ports.count == 4,
                "ports.count",
                "the emulated board has 4 ports",
            ),
            (
                whole_ns,
                "ports.link_rate_bps",
                "a byte must take a whole number of nanoseconds",
            ),
            (
                ports.link_rate_bps >= 1_000_000,
                "ports.link_rate_bps",
                "choose at least 1000000",
            ),
            (
                beside_frames.iter().all(|bytes| *bytes <= 1_000),
                "ports",
                "choose at most 1000 bytes for preamble, tail tag and gap",
            ),
            (
                integrated_switch.transit_ps >= 0,
                "integrated_switch.transit_ps",
                "choose at least 0",
            ),
            (
                integrated_switch.buffer_bytes >= 1_536,
                "integrated_switch.buffer_bytes",
                "choose room for at least one frame, 1536",
            ),
            (
                flow_control.pause_quanta <= 65_535,
                "flow_control.pause_quanta",
                "choose 0 to 65535",
            ),
            (
                flow_control.resume_units < buffer.units,
                "flow_control.resume_units",
                "choose less than buffer.units",
            ),
            (
                flow_control.discard_permille <= 1_000_000,
                "flow_control.discard_permille",
                "choose 0 to 1000000",
            ),
            (
                flow_control.front_ports <= 1,
                "flow_control.front_ports",
                "choose 0 or 1",
            ),
            (
                buffer.packets == 1,
                "buffer.packets",
                "the CPU works on 1 frame at a time",
            ),
            (
                (1..=1_000_000).contains(&buffer.units),
                "buffer.units",
                "choose 1 to 1000000",
            ),
            (
                (1..=1_000_000).contains(&buffer.unit_bytes),
                "buffer.unit_bytes",
                "choose 1 to 1000000",
            ),
            (
                (1..=128).contains(&table.entries),
                "table.entries",
                "choose 1 to 128",
            ),
        ]
    }
}

impl Cpu {
    fn rules(&self) -> [ValueRule; 5] {
        let near_1 = (0.01..=100.0).contains(&self.capacity_factor);
        [
            (self.loop_ps >= 1_000, "cpu.loop_ps", "choose at least 1000"),
            (
                near_1,
                "cpu.capacity_factor",
                "choose about 1, as 0.94 to 1.06",
            ),
            (
                self.timers.period_ns >= 1_000_000,
                "cpu.timers.period_ns",
                "choose at least 1000000",
            ),
            (
                self.timers.cost_ps >= 0,
                "cpu.timers.cost_ps",
                "choose at least 0",
            ),
            (
                self.console.are_whole(),
                "cpu.console",
                "choose at least 0 for each number",
            ),
        ]
    }
}

/// Whether a value can be worked with, its key, and what would be right.
type ValueRule = (bool, &'static str, &'static str);

#[cfg(test)]
mod tests;
