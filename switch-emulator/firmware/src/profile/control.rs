//! Costs of the controller's messages and of housekeeping.

use super::{number, Sourced};
use crate::section;

section! {
    /// Messages of the controller: a segment costs `interrupt`, `segment`, and each of its messages.
    ///
    /// Fields without a comment are what a message costs beside its segment; `hit` and `miss` are each visited entry that
    /// a `FLOW_MOD` selects or not, `everything` with the wildcards that are recognised without comparing.
    #[derive(Default)]
    #[allow(missing_docs)]
    #[allow(clippy::struct_field_names)] // the unit belongs to the name
    pub struct ControlCosts {
        /// Receive interrupt.
        interrupt_ps: i64,
        /// A segment with a message that has no effect.
        segment_ps: i64,
        /// Sending a TCP acknowledgement, for every second segment without a reply.
        acknowledge_ps: i64,
        /// Receiving a TCP acknowledgement without data.
        acknowledgement_ps: i64,
        /// Sending an error, a notice, or a message that the board sends by itself.
        send_ps: i64,
        /// A frame on a native port that means nothing to the board.
        native_frame_ps: i64,
        /// Answering such a frame: ARP, ping, a segment of no connection.
        native_answer_ps: i64,
        /// Each byte of an answered frame (with FCS) beyond 64.
        native_answer_per_byte_ps: i64,
        echo_ps: i64,
        features_ps: i64,
        get_config_ps: i64,
        set_config_ps: i64,
        barrier_ps: i64,
        vendor_ps: i64,
        description_ps: i64,
        table_statistics_ps: i64,
        port_statistics_ps: i64,
        /// Each port of the reply.
        port_statistics_port_ps: i64,
        flow_statistics_ps: i64,
        /// Each entry of the reply.
        flow_statistics_entry_ps: i64,
        /// Each 8 bytes of actions.
        flow_statistics_action_ps: i64,
        packet_out_ps: i64,
        /// Each byte of the frame (with FCS) beyond 64.
        packet_out_per_byte_ps: i64,
        flow_add_ps: i64,
        /// Each action that is stored.
        flow_action_ps: i64,
        /// The error message.
        flow_refused_ps: i64,
        flow_delete_ps: i64,
        flow_modify_ps: i64,
        delete_hit_ps: i64,
        delete_miss_ps: i64,
        delete_everything_hit_ps: i64,
        delete_strict_hit_ps: i64,
        delete_strict_miss_ps: i64,
        modify_hit_ps: i64,
        modify_miss_ps: i64,
        modify_everything_hit_ps: i64,
        modify_strict_hit_ps: i64,
        modify_strict_miss_ps: i64,
    }
}

section! {
    /// Housekeeping jobs, one of them at each tick.
    #[derive(Default)]
    #[allow(clippy::struct_field_names)] // the unit belongs to the name
    pub struct Housekeeping {
        /// Reading the counters of a port.
        port_counters_ps: i64,
        /// Reading the state of the links.
        link_status_ps: i64,
        /// Looking for flows that have timed out.
        flow_timeouts_ps: i64,
    }
}
