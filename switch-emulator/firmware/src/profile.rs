//! The numbers of a device, read from TOML.
//!
//! A number is either plain or a table `{ value, source, range, note }` that says where it comes from. Only
//! the value is kept here; the rest is checked, so that a slip in the file does not pass unseen.

use crate::section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod console;
mod control;
mod number;
mod openflow13;

pub use console::ConsoleCosts;
pub use control::{ControlCosts, Housekeeping};
pub use number::{number, some_number, NumberSource, Sourced};
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
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[schemars(extend("const" = 1))]
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

section! {
    /// Tolerances of guarantees: here clocks are exact, and cables as long as a network says.
    pub struct Tolerance {
        /// How slow or fast the device's clocks may be, in millionths.
        board_clock_ppm: u64,
        /// How slow or fast the clock of a host may be that sends to it.
        sender_clock_ppm: u64,
        /// How long a signal may take through a cable.
        cable_ns: u64,
    }
}

/// How a measured profile came about.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
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

section! {
    /// Front ports and links.
    pub struct PortsProfile {
        /// Number of front ports.
        count: u64,
        /// Rate of front ports and of the link between integrated switch and CPU.
        link_rate_bps: u64,
        /// Preamble and start-of-frame delimiter.
        preamble_bytes: u64,
        /// Pause that a link keeps after each frame.
        interframe_gap_bytes: u64,
        /// Tag that names the port on the link between integrated switch and CPU.
        tail_tag_bytes: u64,
    }
}

section! {
    /// The chip between front ports and CPU.
    pub struct IntegratedSwitch {
        /// `p_IS`: time from a frame's last bit in to its first bit out, on the way in and again on the way out.
        transit_ps: i64,
        /// Frame memory: bounds what waits when several ports bring more than the link to the CPU carries.
        buffer_bytes: u64,
        /// Whether a frame keeps its outermost VLAN tag on its way to the CPU.
        #[serde(default)]
        cpu_port_tags: CpuPortTags,
        /// Frames that it forwards by itself, in L2 learning mode, take `transit_ps` and up to this much more or less,
        /// uniformly. Default: 0.
        bridging_jitter_ps: Option<u64>,
    }
}

/// Handling of a frame's 802.1Q tag by the port to the CPU. The firmware's description leaves it open: the port is
/// programmed to remove tags, but this may not apply to frames that OpenFlow ports trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuPortTags {
    /// The CPU gets frames with their tags.
    #[default]
    Kept,
    /// The CPU gets frames without their outermost tag, so that no entry matches it.
    Removed,
}

section! {
    /// Pause frames, and what the integrated switch does when it is paused.
    pub struct FlowControlProfile {
        /// How long a pause lasts that the CPU's MAC asks for when it has lost a frame, in units of 512 bit times; 0: it never
        /// asks.
        pause_quanta: u64,
        /// The MAC calls the pause off when no more units of the ring than these are in use.
        resume_units: u64,
        /// Frames for the paused CPU that the integrated switch holds until it may go on. It throws away further ones.
        held_frames: u64,
        /// For how long a frame that is thrown away has taken up the room that frames from the CPU need, in thousandths of
        /// the time in which a frame of its length is received and passed on.
        discard_permille: u64,
        /// 1: a pause frame that arrives on a front port stops what would leave by it; 0: it is ignored.
        front_ports: u64,
    }
}

section! {
    /// Receive buffers of the CPU.
    pub struct Buffer {
        /// Frames that the CPU itself holds: the one it works on.
        packets: u64,
        /// Units of the receive ring.
        units: u64,
        /// Size of a unit; a frame occupies whole units.
        unit_bytes: u64,
    }
}

section! {
    /// The flow table.
    pub struct TableProfile {
        /// Entries that it holds.
        entries: u64,
    }
}

section! {
    /// Time that the CPU spends.
    pub struct Cpu {
        /// Each frame: fixed part. Contains both transits of the integrated switch and the mean wait for the loop.
        base_ps: i64,
        /// Each frame: part that grows with its length.
        per_byte_ps: i64,
        /// One idle iteration of the main loop.
        loop_ps: i64,
        /// True capacity of the busy CPU, divided by that of equation 6.
        capacity_factor: f64,
        /// Table search.
        entry: EntryCosts,
        /// Actions of the entry that is used.
        action: ActionCosts,
        /// Work that is not caused by frames.
        timers: Timers,
        /// Messages of the controller.
        control: ControlCosts,
        /// Housekeeping jobs.
        housekeeping: Housekeeping,
        /// The serial console; without the table it costs nothing.
        console: Option<ConsoleCosts>,
        /// OpenFlow 1.3 where it differs from 1.0. Without the table a board of this profile speaks 1.0 only.
        openflow13: Option<OpenFlow13Costs>,
    }
}

section! {
    /// Table search: an examined entry costs `base` and each field of it that is not a wildcard.
    #[allow(missing_docs)] // match fields of OpenFlow 1.0
    #[allow(clippy::struct_field_names)] // the unit belongs to the name
    pub struct EntryCosts {
        base_ps: i64,
        in_port_ps: i64,
        dl_src_ps: i64,
        dl_dst_ps: i64,
        dl_vlan_ps: i64,
        dl_vlan_pcp_ps: i64,
        dl_type_ps: i64,
        nw_tos_ps: i64,
        nw_proto_ps: i64,
        nw_src_ps: i64,
        nw_dst_ps: i64,
        tp_src_ps: i64,
        tp_dst_ps: i64,
        skipped_ps: i64,
        after_hit_ps: i64,
    }
}

/// Costs of actions.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
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

/// A plain number, as the packet's layout gives it.
type Offset = i64;

section! {
    /// `fixed + per_byte * max(l - offset, 0)`.
    #[derive(Copy)]
    pub struct ActionCost {
        /// Fixed part.
        fixed_ps: i64,
        /// Part that grows with the frame.
        per_byte_ps: i64,
        /// Length from which it grows.
        #[serde(deserialize_with = "number")]
        offset_bytes: Offset,
    }
}

section! {
    /// Work of the CPU that returns with a period.
    pub struct Timers {
        /// Time between two runs.
        period_ns: u64,
        /// Time that a run takes.
        cost_ps: i64,
    }
}

impl Profile {
    /// Reads a profile that a board can be made of.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not the profile of a Zodiac FX.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile = Self::read(text)?;
        profile.check_emulated()?;
        Ok(profile)
    }

    /// Reads a profile, also of a device that is like a Zodiac FX but has more ports or a larger table.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn read(text: &str) -> Result<Self, ProfileError> {
        if profile_kind(text)?.is_some() {
            return Err(ProfileError::Value {
                key: "kind",
                reason: "another kind of device than a Zodiac FX; put it into a simulated network",
            });
        }
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        let tolerance = profile.tolerance.iter().flat_map(Tolerance::rules);
        let rules = profile.rules().into_iter().chain(profile.cpu.rules());
        check(rules.chain(tolerance))?;
        Ok(profile)
    }

    /// Checks that a board can be made of the profile.
    ///
    /// # Errors
    /// [`ProfileError::Value`] for a number that no board has.
    pub fn check_emulated(&self) -> Result<(), ProfileError> {
        let rate_bps = self.ports.link_rate_bps;
        check([
            (
                self.ports.count == 4,
                "ports.count",
                "the emulated board has 4 ports",
            ),
            (
                8_000_000_000 % rate_bps == 0,
                "ports.link_rate_bps",
                "a byte must take a whole number of nanoseconds",
            ),
            (
                self.buffer.packets == 1,
                "buffer.packets",
                "the CPU works on 1 frame at a time",
            ),
            (
                self.table.entries <= 128,
                "table.entries",
                "choose 1 to 128",
            ),
        ])
    }

    fn rules(&self) -> [ValueRule; 13] {
        let Self {
            ports,
            integrated_switch,
            flow_control,
            buffer,
            table,
            ..
        } = self;
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
                integrated_switch.bridging_jitter_ps.unwrap_or(0)
                    <= integrated_switch.transit_ps.unsigned_abs(),
                "integrated_switch.bridging_jitter_ps",
                "choose at most transit_ps",
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
                (1..=1_000_000).contains(&buffer.units),
                "buffer.units",
                "choose 1 to 1000000",
            ),
            (
                (1..=1_000_000).contains(&buffer.unit_bytes),
                "buffer.unit_bytes",
                "choose 1 to 1000000",
            ),
            (table.entries >= 1, "table.entries", "choose at least 1"),
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
                self.console.as_ref().is_none_or(ConsoleCosts::are_whole),
                "cpu.console",
                "choose at least 0 for each number",
            ),
        ]
    }
}

impl Tolerance {
    /// Returns checks of the values.
    #[must_use]
    pub fn rules(&self) -> [ValueRule; 3] {
        [
            (
                self.board_clock_ppm <= 10_000,
                "tolerance.board_clock_ppm",
                "choose 0 to 10000",
            ),
            (
                self.sender_clock_ppm <= 10_000,
                "tolerance.sender_clock_ppm",
                "choose 0 to 10000",
            ),
            (
                self.cable_ns <= 1_000_000,
                "tolerance.cable_ns",
                "choose 0 to 1000000",
            ),
        ]
    }
}

/// Whether a value can be worked with, its key, and what would be right.
pub type ValueRule = (bool, &'static str, &'static str);

/// Checks values of a profile.
///
/// # Errors
/// [`ProfileError::Value`] for the first rule that does not hold.
pub fn check(rules: impl IntoIterator<Item = ValueRule>) -> Result<(), ProfileError> {
    match rules.into_iter().find(|(holds, ..)| !holds) {
        Some((_, key, reason)) => Err(ProfileError::Value { key, reason }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
