//! Costs of OpenFlow 1.3 where it differs from 1.0.

use super::{number, Sourced};
use crate::section;

section! {
    /// Testing a field of an entry.
    #[derive(Copy, Default)]
    #[allow(clippy::struct_field_names)] // the unit belongs to the name
    pub struct FieldCost {
        /// It holds, and the next one is tested.
        passes_ps: i64,
        /// It fails, which ends the entry; the entry's own cost is contained.
        fails_ps: i64,
    }
}

section! {
    /// Search, pipeline, and messages of OpenFlow 1.3. What is not here costs as in 1.0: frames, their length, most actions,
    /// segments, echoes, barriers.
    #[derive(Default)]
    #[allow(missing_docs)] // fields of matches and types of messages by their names in OpenFlow 1.3
    pub struct OpenFlow13Costs {
        /// An entry of another table, in each search.
        other_table_ps: i64,
        /// An entry passed over because its priority is not above the best hit.
        skipped_ps: i64,
        /// Additional cost of an entry that is examined after a hit.
        after_hit_ps: i64,
        /// An entry without fields.
        no_fields_ps: i64,
        /// An entry whose fields all hold, beside these.
        hit_ps: i64,
        in_port: FieldCost,
        eth_dst: FieldCost,
        eth_src: FieldCost,
        /// Either address under a mask.
        eth_masked: FieldCost,
        eth_type: FieldCost,
        vlan_vid: FieldCost,
        vlan_vid_masked: FieldCost,
        vlan_pcp: FieldCost,
        /// Also of the ECN bits.
        ip_dscp: FieldCost,
        ip_proto: FieldCost,
        ipv4_src: FieldCost,
        ipv4_dst: FieldCost,
        /// Either address under a mask.
        ipv4_masked: FieldCost,
        tcp_port: FieldCost,
        udp_port: FieldCost,
        /// Label, traffic class, bottom of stack.
        mpls: FieldCost,
        /// A field that the firmware does not know.
        unsupported: FieldCost,
        /// Each further table that a frame visits, beside its search.
        next_table_ps: i64,
        /// The instruction METER.
        meter_ps: i64,
        /// The action GROUP, beside the output in the group.
        group_ps: i64,
        features_ps: i64,
        role_ps: i64,
        description_ps: i64,
        /// A multipart request without a number of its own here.
        multipart_ps: i64,
        flow_statistics_entry_ps: i64,
        aggregate_entry_ps: i64,
        table_statistics_ps: i64,
        table_statistics_entry_ps: i64,
        table_features_ps: i64,
        port_statistics_ps: i64,
        /// Each port of the reply.
        port_statistics_port_ps: i64,
        port_description_ps: i64,
        flow_add_ps: i64,
        /// Each entry that an ADD compares with.
        replacement_scan_ps: i64,
        flow_delete_ps: i64,
        /// Each entry that a DELETE removes.
        delete_hit_ps: i64,
        /// Each entry that it compares.
        delete_miss_ps: i64,
        /// Each entry that a DELETE with a port or group looks at.
        delete_by_port_ps: i64,
        /// Each entry of the same priority that a `DELETE_STRICT` compares.
        delete_strict_ps: i64,
        /// Each entry of another one.
        delete_strict_priority_ps: i64,
        /// A `GROUP_MOD` or `METER_MOD`.
        modification_ps: i64,
        /// An error message.
        refused_ps: i64,
    }
}
