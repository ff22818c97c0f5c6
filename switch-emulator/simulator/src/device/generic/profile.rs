//! Profile of a generic switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zodiac_firmware::{check, number, section, some_number, ProfileError, Sourced, Tolerance};

use super::buffer_pool::BufferProfile;
use super::lookup::LookupProfile;
use super::pipeline::{Forwarding, PipelineProfile};
use super::server::ServerProfile;
use super::software::SoftwareProfile;
use crate::device::openflow::agent::AgentProfile;
use crate::device::openflow::rules::{Path, TableModel, TableRule};
use crate::device::{SwitchConfig, MAX_PORTS};

/// Format of profile files that this crate reads.
const FORMAT: u32 = 1;
/// Longest span in a profile, 100 s: sums with instants stay far from overflow.
const MAX_NS: u64 = 100_000_000_000;

/// Profile of a generic switch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GenericSwitchProfile {
    #[schemars(extend("const" = 1))]
    format: u32,
    kind: GenericKind,
    /// Name by which files and commands refer to the device.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Front ports and links.
    pub ports: GenericPorts,
    /// The flow table.
    pub table: GenericTable,
    /// From a frame's arrival until it is in its queue, if that is the same for all.
    #[serde(default)]
    pub forwarding: Option<Forwarding>,
    /// From a frame's arrival until it is in its queue, if that depends on the frame.
    #[serde(default)]
    pub pipeline: Option<PipelineProfile>,
    /// Forwarding before the whole frame is there.
    #[serde(default)]
    pub cut_through: Option<CutThrough>,
    /// A look-up that all ports share.
    #[serde(default)]
    pub lookup: Option<LookupProfile>,
    /// Shared server that forwards the frames of all ports one after another.
    #[serde(default)]
    pub server: Option<ServerProfile>,
    /// The CPU, if it forwards too.
    #[serde(default)]
    pub software: Option<SoftwareProfile>,
    /// Strict priority before each port.
    #[serde(default)]
    pub priorities: Option<Priorities>,
    /// A memory that all queues share.
    #[serde(default)]
    pub buffer: Option<BufferProfile>,
    /// How entries get from the OpenFlow agent to the chip; if absent, they are there at once.
    #[serde(default)]
    pub agent: Option<AgentProfile>,
    /// Tolerances of guarantees beyond these numbers. The simulator does not use them.
    pub tolerance: Option<Tolerance>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
enum GenericKind {
    GenericSwitch,
}

section! {
    /// Front ports and links.
    pub struct GenericPorts {
        /// Number of front ports.
        count: u8,
        /// Rate of each.
        link_rate_bps: u64,
    }
}

section! {
    /// The flow table.
    pub struct GenericTable {
        /// Entries that it holds.
        entries: u64,
        /// VLANs of a switch without OpenFlow, whose entries are MAC addresses: it forwards by VLAN and destination. If
        /// absent, entries are those of OpenFlow. The simulator has an entry for each flow in either case.
        vlans: Option<u64>,
        /// Table rules of a switch with a `pipeline`; the first rule that fits counts.
        #[serde(default)]
        rules: Vec<TableRule>,
        /// Tagged frames match no entry.
        #[serde(default)]
        misses_tagged: bool,
    }
}

section! {
    /// Forwarding before the whole frame is there. All ports have one rate, so a frame never leaves faster than it comes.
    #[derive(Copy)]
    pub struct CutThrough {
        /// How many bytes of a frame, after its preamble, must have arrived before it is looked up.
        header_bytes: u64,
    }
}

section! {
    /// Strict priority before each port.
    #[derive(Copy)]
    pub struct Priorities {
        /// Queues of a port, the first one the lowest.
        queues: u64,
        /// Frames that each holds.
        limit_frames: u64,
        /// Time between two choices of the queue to send from; 0: it is chosen for every frame.
        check_ns: u64,
    }
}

impl CutThrough {
    /// Checks of the values: whether each holds, the key that it concerns, and how to mend it.
    fn rules(self, has_cpu: bool) -> [(bool, &'static str, &'static str); 2] {
        [
            (
                (14..=1_518).contains(&self.header_bytes),
                "cut_through.header_bytes",
                "choose 14, an Ethernet header, to 1518",
            ),
            (
                !has_cpu,
                "cut_through",
                "a CPU forwards whole frames: leave out [software] or [cut_through]",
            ),
        ]
    }
}

impl GenericSwitchProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] with the line and the key when the text is not the profile of such a switch.
    #[allow(clippy::too_many_lines)] // a list of rules
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        let rate_bps = profile.ports.link_rate_bps;
        let rules = [
            (
                profile.format == FORMAT,
                "format",
                "this simulator reads format 1",
            ),
            (
                (1..=MAX_PORTS).contains(&profile.ports.count),
                "ports.count",
                "choose 1 to 64",
            ),
            (
                (1..=1_000_000_000_000).contains(&rate_bps),
                "ports.link_rate_bps",
                "choose 1 to 1000000000000",
            ),
            (
                (1..=1_000_000).contains(&profile.table.entries),
                "table.entries",
                "choose 1 to 1000000",
            ),
            (
                profile.forwarding.is_some() != profile.pipeline.is_some(),
                "forwarding",
                "give either [forwarding], a fixed time, or [pipeline]",
            ),
            (
                profile
                    .forwarding
                    .as_ref()
                    .is_none_or(|forwarding| forwarding.latency_ns <= MAX_NS),
                "forwarding.latency_ns",
                "choose at most 100 s",
            ),
            (
                profile.lookup.is_none_or(|lookup| {
                    (1..=10_000_000_000).contains(&lookup.frames_per_s)
                        && lookup.waiting_frames <= 1_000_000
                }),
                "lookup",
                "choose 1 to 10000000000 frames_per_s, and at most 1000000 waiting_frames",
            ),
            (
                profile.server.is_none() || profile.lookup.is_none() && profile.cut_through.is_none(),
                "server",
                "it takes whole frames, and looks them up itself: leave [server] out, or [lookup] and [cut_through]",
            ),
            (
                profile.priorities.is_none_or(|priorities| {
                    (1..=64).contains(&priorities.queues)
                        && (1..=1_000_000).contains(&priorities.limit_frames)
                        && priorities.check_ns <= MAX_NS
                }),
                "priorities",
                "choose 1 to 64 queues, 1 to 1000000 limit_frames, and a check_ns of at most 100 s",
            ),
            (
                profile.buffer.is_none() || profile.priorities.is_some(),
                "buffer",
                "only the queues of [priorities] share a memory: add these, or leave [buffer] out",
            ),
            (
                profile.buffer.is_none_or(|buffer| {
                    buffer.pool_bytes <= 1_000_000_000_000
                        && (1..=100_000).contains(&buffer.factor_percent)
                }),
                "buffer",
                "choose at most 1000000000000 pool_bytes, and 1 to 100000 factor_percent",
            ),
            (
                profile.buffer.and_then(|buffer| Some((buffer.pool_bytes, buffer.reserved_bytes?))).is_none_or(
                    |(pool, reserved)| reserved <= pool / profile.queues()
                ),
                "buffer.reserved_bytes",
                "all queues of all ports together have more reserved than pool_bytes: choose less",
            ),
            (
                profile.table.vlans.is_none_or(|vlans| (1..=4_094).contains(&vlans)),
                "table.vlans",
                "choose 1 to 4094",
            ),
            (
                profile.software.is_some()
                    || profile.table.rules.iter().all(|rule| rule.path != Path::Software),
                "table.rules",
                "a rule sends entries to the CPU, which does not forward: add [software], or choose \"refused\"",
            ),
            (
                profile.table.rules.iter().all(|rule| {
                    [rule.entries, rule.loses_one_in]
                        .into_iter()
                        .flatten()
                        .all(|entries| (1..=1_000_000).contains(&entries))
                }),
                "table.rules",
                "choose 1 to 1000000 entries, and the same for loses_one_in",
            ),
            (
                (profile.table.rules.is_empty() && !profile.table.misses_tagged)
                    || profile.pipeline.is_some(),
                "table",
                "rules and misses_tagged are of a chip's table: add [pipeline], or leave them out",
            ),
            (
                profile.agent.is_none() || profile.pipeline.is_some(),
                "agent",
                "only a switch with a [pipeline] has a chip to hand entries to: add that, or leave [agent] out",
            ),
        ];
        let pipeline = profile.pipeline.iter().flat_map(|part| part.rules(MAX_NS));
        let software = profile.software.iter().flat_map(|part| part.rules(MAX_NS));
        let agent = profile.agent.iter().flat_map(AgentProfile::rules);
        let has_cpu = profile.software.is_some();
        let cut_through = profile.cut_through.iter();
        let cut_through = cut_through.flat_map(|part| part.rules(has_cpu));
        let server = profile.server.iter().flat_map(|part| part.rules());
        let tolerance = profile.tolerance.iter().flat_map(Tolerance::rules);
        let rules = rules
            .into_iter()
            .chain(server)
            .chain(pipeline)
            .chain(software)
            .chain(agent)
            .chain(cut_through)
            .chain(tolerance);
        check(rules)?;
        Ok(profile)
    }

    /// Returns the rate of the ports of a switch with these settings, in bit/s.
    pub(crate) fn link_rate_bps(&self, config: &SwitchConfig) -> u64 {
        config.link_rate_bps.unwrap_or(self.ports.link_rate_bps)
    }

    /// Returns the number of queues of all ports with strict priority; at least 1.
    pub(super) fn queues(&self) -> u64 {
        let each = self.priorities.map_or(1, |priorities| priorities.queues);
        u64::from(self.ports.count).saturating_mul(each).max(1)
    }

    /// Returns the pipeline, or a fixed time in its place.
    pub(super) fn pipeline(&self) -> PipelineProfile {
        let fixed = || self.forwarding.as_ref().map(PipelineProfile::fixed);
        let part = self.pipeline.clone().or_else(fixed);
        part.expect("from_toml() wants one of the two")
    }

    /// Returns the rules of a switch chip's table, or `None` for a switch without a chip.
    pub(super) fn table_model(&self) -> Option<TableModel> {
        self.pipeline.as_ref()?;
        Some(TableModel {
            rules: self.table.rules.clone(),
            entries: self.table.entries,
            software_entries: self.software.map_or(1, |software| software.entries),
            misses_tagged: self.table.misses_tagged,
        })
    }
}
