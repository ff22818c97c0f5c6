//! Costs of OpenFlow 1.3 where it differs from 1.0.

use serde::Deserialize;

use super::number;

/// Testing a field of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names)] // the unit belongs to the name
pub struct FieldCost {
    /// It holds, and the next one is tested.
    #[serde(deserialize_with = "number")]
    pub passes_ps: i64,
    /// It fails, which ends the entry; the entry's own cost is contained.
    #[serde(deserialize_with = "number")]
    pub fails_ps: i64,
}

impl FieldCost {
    const FREE: Self = Self {
        passes_ps: 0,
        fails_ps: 0,
    };
}

/// Search, pipeline, and messages of OpenFlow 1.3. What is not here costs as in 1.0: frames, their length, most actions,
/// segments, echoes, barriers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // fields of matches and types of messages by their names in OpenFlow 1.3
pub struct OpenFlow13Costs {
    /// An entry of another table, in each search.
    #[serde(deserialize_with = "number")]
    pub other_table_ps: i64,
    /// An entry passed over because its priority is not above the best hit.
    #[serde(deserialize_with = "number")]
    pub skipped_ps: i64,
    /// Additional cost of an entry that is examined after a hit.
    #[serde(deserialize_with = "number")]
    pub after_hit_ps: i64,
    /// An entry without fields.
    #[serde(deserialize_with = "number")]
    pub no_fields_ps: i64,
    /// An entry whose fields all hold, beside these.
    #[serde(deserialize_with = "number")]
    pub hit_ps: i64,
    pub in_port: FieldCost,
    pub eth_dst: FieldCost,
    pub eth_src: FieldCost,
    /// Either address under a mask.
    pub eth_masked: FieldCost,
    pub eth_type: FieldCost,
    pub vlan_vid: FieldCost,
    pub vlan_vid_masked: FieldCost,
    pub vlan_pcp: FieldCost,
    /// Also of the ECN bits.
    pub ip_dscp: FieldCost,
    pub ip_proto: FieldCost,
    pub ipv4_src: FieldCost,
    pub ipv4_dst: FieldCost,
    /// Either address under a mask.
    pub ipv4_masked: FieldCost,
    pub tcp_port: FieldCost,
    pub udp_port: FieldCost,
    /// Label, traffic class, bottom of stack.
    pub mpls: FieldCost,
    /// A field that the firmware does not know.
    pub unsupported: FieldCost,
    /// Each further table that a frame visits, beside its search.
    #[serde(deserialize_with = "number")]
    pub next_table_ps: i64,
    /// The instruction METER.
    #[serde(deserialize_with = "number")]
    pub meter_ps: i64,
    /// The action GROUP, beside the output in the group.
    #[serde(deserialize_with = "number")]
    pub group_ps: i64,
    #[serde(deserialize_with = "number")]
    pub features_ps: i64,
    #[serde(deserialize_with = "number")]
    pub role_ps: i64,
    #[serde(deserialize_with = "number")]
    pub description_ps: i64,
    /// A multipart request without a number of its own here.
    #[serde(deserialize_with = "number")]
    pub multipart_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_statistics_entry_ps: i64,
    #[serde(deserialize_with = "number")]
    pub aggregate_entry_ps: i64,
    #[serde(deserialize_with = "number")]
    pub table_statistics_ps: i64,
    #[serde(deserialize_with = "number")]
    pub table_statistics_entry_ps: i64,
    #[serde(deserialize_with = "number")]
    pub table_features_ps: i64,
    #[serde(deserialize_with = "number")]
    pub port_statistics_ps: i64,
    /// Each port of the reply.
    #[serde(deserialize_with = "number")]
    pub port_statistics_port_ps: i64,
    #[serde(deserialize_with = "number")]
    pub port_description_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_add_ps: i64,
    /// Each entry that an ADD compares with.
    #[serde(deserialize_with = "number")]
    pub replacement_scan_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_delete_ps: i64,
    /// Each entry that a DELETE removes.
    #[serde(deserialize_with = "number")]
    pub delete_hit_ps: i64,
    /// Each entry that it compares.
    #[serde(deserialize_with = "number")]
    pub delete_miss_ps: i64,
    /// Each entry that a DELETE with a port or group looks at.
    #[serde(deserialize_with = "number")]
    pub delete_by_port_ps: i64,
    /// Each entry of the same priority that a `DELETE_STRICT` compares.
    #[serde(deserialize_with = "number")]
    pub delete_strict_ps: i64,
    /// Each entry of another one.
    #[serde(deserialize_with = "number")]
    pub delete_strict_priority_ps: i64,
    /// A `GROUP_MOD` or `METER_MOD`.
    #[serde(deserialize_with = "number")]
    pub modification_ps: i64,
    /// An error message.
    #[serde(deserialize_with = "number")]
    pub refused_ps: i64,
}

impl OpenFlow13Costs {
    /// Every cost 0, as [`ControlCosts::FREE`](super::ControlCosts::FREE).
    pub const FREE: Self = Self {
        other_table_ps: 0,
        skipped_ps: 0,
        after_hit_ps: 0,
        no_fields_ps: 0,
        hit_ps: 0,
        in_port: FieldCost::FREE,
        eth_dst: FieldCost::FREE,
        eth_src: FieldCost::FREE,
        eth_masked: FieldCost::FREE,
        eth_type: FieldCost::FREE,
        vlan_vid: FieldCost::FREE,
        vlan_vid_masked: FieldCost::FREE,
        vlan_pcp: FieldCost::FREE,
        ip_dscp: FieldCost::FREE,
        ip_proto: FieldCost::FREE,
        ipv4_src: FieldCost::FREE,
        ipv4_dst: FieldCost::FREE,
        ipv4_masked: FieldCost::FREE,
        tcp_port: FieldCost::FREE,
        udp_port: FieldCost::FREE,
        mpls: FieldCost::FREE,
        unsupported: FieldCost::FREE,
        next_table_ps: 0,
        meter_ps: 0,
        group_ps: 0,
        features_ps: 0,
        role_ps: 0,
        description_ps: 0,
        multipart_ps: 0,
        flow_statistics_entry_ps: 0,
        aggregate_entry_ps: 0,
        table_statistics_ps: 0,
        table_statistics_entry_ps: 0,
        table_features_ps: 0,
        port_statistics_ps: 0,
        port_statistics_port_ps: 0,
        port_description_ps: 0,
        flow_add_ps: 0,
        replacement_scan_ps: 0,
        flow_delete_ps: 0,
        delete_hit_ps: 0,
        delete_miss_ps: 0,
        delete_by_port_ps: 0,
        delete_strict_ps: 0,
        delete_strict_priority_ps: 0,
        modification_ps: 0,
        refused_ps: 0,
    };
}
