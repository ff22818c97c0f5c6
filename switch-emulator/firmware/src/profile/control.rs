//! Costs of the controller's messages and of housekeeping.

use serde::Deserialize;

use super::number;

/// Messages of the controller: a segment costs `interrupt`, `segment`, and each of its messages.
///
/// Fields without a comment are what a message costs beside its segment; `hit` and `miss` are each visited entry that
/// a `FLOW_MOD` selects or not, `everything` with the wildcards that are recognised without comparing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
#[allow(clippy::struct_field_names)] // the unit belongs to the name
pub struct ControlCosts {
    /// Receive interrupt.
    #[serde(deserialize_with = "number")]
    pub interrupt_ps: i64,
    /// A segment with a message that has no effect.
    #[serde(deserialize_with = "number")]
    pub segment_ps: i64,
    /// Sending a TCP acknowledgement, for every second segment without a reply.
    #[serde(deserialize_with = "number")]
    pub acknowledge_ps: i64,
    /// Receiving a TCP acknowledgement without data.
    #[serde(deserialize_with = "number")]
    pub acknowledgement_ps: i64,
    /// A frame on a native port that means nothing to the board.
    #[serde(deserialize_with = "number")]
    pub native_frame_ps: i64,
    /// Answering such a frame: ARP, ping, a segment of no connection.
    #[serde(deserialize_with = "number")]
    pub native_answer_ps: i64,
    /// Each byte of an answered frame (with FCS) beyond 64.
    #[serde(deserialize_with = "number")]
    pub native_answer_per_byte_ps: i64,
    /// Sending an error, a notice, or a message that the board sends by itself.
    #[serde(deserialize_with = "number")]
    pub send_ps: i64,
    #[serde(deserialize_with = "number")]
    pub echo_ps: i64,
    #[serde(deserialize_with = "number")]
    pub features_ps: i64,
    #[serde(deserialize_with = "number")]
    pub get_config_ps: i64,
    #[serde(deserialize_with = "number")]
    pub set_config_ps: i64,
    #[serde(deserialize_with = "number")]
    pub barrier_ps: i64,
    #[serde(deserialize_with = "number")]
    pub vendor_ps: i64,
    #[serde(deserialize_with = "number")]
    pub description_ps: i64,
    #[serde(deserialize_with = "number")]
    pub table_statistics_ps: i64,
    #[serde(deserialize_with = "number")]
    pub port_statistics_ps: i64,
    /// Each port of the reply.
    #[serde(deserialize_with = "number")]
    pub port_statistics_port_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_statistics_ps: i64,
    /// Each entry of the reply.
    #[serde(deserialize_with = "number")]
    pub flow_statistics_entry_ps: i64,
    /// Each 8 bytes of actions.
    #[serde(deserialize_with = "number")]
    pub flow_statistics_action_ps: i64,
    #[serde(deserialize_with = "number")]
    pub packet_out_ps: i64,
    /// Each byte of the frame (with FCS) beyond 64.
    #[serde(deserialize_with = "number")]
    pub packet_out_per_byte_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_add_ps: i64,
    /// Each action that is stored.
    #[serde(deserialize_with = "number")]
    pub flow_action_ps: i64,
    /// The error message.
    #[serde(deserialize_with = "number")]
    pub flow_refused_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_delete_ps: i64,
    #[serde(deserialize_with = "number")]
    pub flow_modify_ps: i64,
    #[serde(deserialize_with = "number")]
    pub delete_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub delete_miss_ps: i64,
    #[serde(deserialize_with = "number")]
    pub delete_everything_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub delete_strict_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub delete_strict_miss_ps: i64,
    #[serde(deserialize_with = "number")]
    pub modify_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub modify_miss_ps: i64,
    #[serde(deserialize_with = "number")]
    pub modify_everything_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub modify_strict_hit_ps: i64,
    #[serde(deserialize_with = "number")]
    pub modify_strict_miss_ps: i64,
}

impl ControlCosts {
    /// Every cost 0: messages are handled in no time, as an emulator of instructions without a clock does.
    pub const FREE: Self = Self {
        interrupt_ps: 0,
        segment_ps: 0,
        acknowledge_ps: 0,
        acknowledgement_ps: 0,
        native_frame_ps: 0,
        native_answer_ps: 0,
        native_answer_per_byte_ps: 0,
        send_ps: 0,
        echo_ps: 0,
        features_ps: 0,
        get_config_ps: 0,
        set_config_ps: 0,
        barrier_ps: 0,
        vendor_ps: 0,
        description_ps: 0,
        table_statistics_ps: 0,
        port_statistics_ps: 0,
        port_statistics_port_ps: 0,
        flow_statistics_ps: 0,
        flow_statistics_entry_ps: 0,
        flow_statistics_action_ps: 0,
        packet_out_ps: 0,
        packet_out_per_byte_ps: 0,
        flow_add_ps: 0,
        flow_action_ps: 0,
        flow_refused_ps: 0,
        flow_delete_ps: 0,
        flow_modify_ps: 0,
        delete_hit_ps: 0,
        delete_miss_ps: 0,
        delete_everything_hit_ps: 0,
        delete_strict_hit_ps: 0,
        delete_strict_miss_ps: 0,
        modify_hit_ps: 0,
        modify_miss_ps: 0,
        modify_everything_hit_ps: 0,
        modify_strict_hit_ps: 0,
        modify_strict_miss_ps: 0,
    };
}

/// Housekeeping jobs, one of them at each tick.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names)] // the unit belongs to the name
pub struct Housekeeping {
    /// Reading the counters of a port.
    #[serde(deserialize_with = "number")]
    pub port_counters_ps: i64,
    /// Reading the state of the links.
    #[serde(deserialize_with = "number")]
    pub link_status_ps: i64,
    /// Looking for flows that have timed out.
    #[serde(deserialize_with = "number")]
    pub flow_timeouts_ps: i64,
}

impl Housekeeping {
    /// Every cost 0, as [`ControlCosts::FREE`].
    pub const FREE: Self = Self {
        port_counters_ps: 0,
        link_status_ps: 0,
        flow_timeouts_ps: 0,
    };
}
