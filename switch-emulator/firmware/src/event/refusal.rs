//! Names and meaning of OpenFlow's error messages.

use crate::quirks::Quirk;

/// Returns the name of an error message's type and code in OpenFlow 1.0 or 1.3, as the specification has it.
pub(super) fn name(
    version: u8,
    error_type: u16,
    error_code: u16,
) -> Option<(&'static str, &'static str)> {
    let (kind, codes): (&str, &[&str]) = match (version, error_type) {
        (_, 0) => ("HELLO_FAILED", &["INCOMPATIBLE", "EPERM"]),
        (_, 1) => (
            "BAD_REQUEST",
            &[
                "BAD_VERSION", "BAD_TYPE", "BAD_STAT or BAD_MULTIPART", "BAD_VENDOR or BAD_EXPERIMENTER", "BAD_SUBTYPE", "EPERM",
                "BAD_LEN", "BUFFER_EMPTY", "BUFFER_UNKNOWN", "BAD_TABLE_ID", "IS_SLAVE", "BAD_PORT", "BAD_PACKET",
                "MULTIPART_BUFFER_OVERFLOW",
            ],
        ),
        (_, 2) => (
            "BAD_ACTION",
            &[
                "BAD_TYPE", "BAD_LEN", "BAD_VENDOR or BAD_EXPERIMENTER", "BAD_VENDOR_TYPE or BAD_EXPERIMENTER_TYPE", "BAD_OUT_PORT",
                "BAD_ARGUMENT", "EPERM", "TOO_MANY", "BAD_QUEUE", "BAD_OUT_GROUP", "MATCH_INCONSISTENT", "UNSUPPORTED_ORDER",
                "BAD_TAG", "BAD_SET_TYPE", "BAD_SET_LEN", "BAD_SET_ARGUMENT",
            ],
        ),
        (1, 3) => (
            "FLOW_MOD_FAILED",
            &[
                "ALL_TABLES_FULL: there is no room for another entry",
                "OVERLAP: CHECK_OVERLAP is set, and an entry of the same priority can match the same frame",
                "EPERM: this is not allowed",
                "BAD_EMERG_TIMEOUT: an emergency entry has a timeout",
                "BAD_COMMAND: the command is unknown",
                "UNSUPPORTED: the entry or its list of actions cannot be had",
            ],
        ),
        (1, 4) | (4, 7) => ("PORT_MOD_FAILED", &["BAD_PORT", "BAD_HW_ADDR", "BAD_CONFIG", "BAD_ADVERTISE", "EPERM"]),
        (1, 5) | (4, 9) => ("QUEUE_OP_FAILED", &["BAD_PORT", "BAD_QUEUE", "EPERM"]),
        (4, 3) => (
            "BAD_INSTRUCTION",
            &[
                "UNKNOWN_INST", "UNSUP_INST", "BAD_TABLE_ID", "UNSUP_METADATA", "UNSUP_METADATA_MASK", "BAD_EXPERIMENTER",
                "BAD_EXPERIMENTER_TYPE", "BAD_LEN", "EPERM",
            ],
        ),
        (4, 4) => (
            "BAD_MATCH",
            &[
                "BAD_TYPE", "BAD_LEN", "BAD_TAG", "BAD_DL_ADDR_MASK", "BAD_NW_ADDR_MASK", "BAD_WILDCARDS", "BAD_FIELD", "BAD_VALUE",
                "BAD_MASK", "BAD_PREREQ", "DUP_FIELD", "EPERM",
            ],
        ),
        (4, 5) => (
            "FLOW_MOD_FAILED",
            &[
                "UNKNOWN", "TABLE_FULL: there is no room for another entry", "BAD_TABLE_ID: there is no such table",
                "OVERLAP: CHECK_OVERLAP is set, and an entry of the same priority can match the same frame",
                "EPERM", "BAD_TIMEOUT", "BAD_COMMAND: the command is unknown", "BAD_FLAGS: a flag is unknown",
            ],
        ),
        (4, 6) => (
            "GROUP_MOD_FAILED",
            &[
                "GROUP_EXISTS", "INVALID_GROUP", "WEIGHT_UNSUPPORTED", "OUT_OF_GROUPS", "OUT_OF_BUCKETS", "CHAINING_UNSUPPORTED",
                "WATCH_UNSUPPORTED", "LOOP", "UNKNOWN_GROUP", "CHAINED_GROUP", "BAD_TYPE", "BAD_COMMAND", "BAD_BUCKET", "BAD_WATCH",
                "EPERM",
            ],
        ),
        (4, 8) => ("TABLE_MOD_FAILED", &["BAD_TABLE", "BAD_CONFIG", "EPERM"]),
        (4, 10) => ("SWITCH_CONFIG_FAILED", &["BAD_FLAGS", "BAD_LEN", "EPERM"]),
        (4, 11) => ("ROLE_REQUEST_FAILED", &["STALE", "UNSUP", "BAD_ROLE"]),
        (4, 12) => (
            "METER_MOD_FAILED",
            &[
                "UNKNOWN", "METER_EXISTS", "INVALID_METER", "UNKNOWN_METER", "BAD_COMMAND", "BAD_FLAGS", "BAD_RATE", "BAD_BURST",
                "BAD_BAND", "BAD_BAND_VALUE", "OUT_OF_METERS", "OUT_OF_BANDS",
            ],
        ),
        (4, 13) => (
            "TABLE_FEATURES_FAILED",
            &["BAD_TABLE", "BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"],
        ),
        _ => return None,
    };
    Some((kind, codes.get(usize::from(error_code))?))
}

/// Returns why the firmware refuses a message with an error that says something else, and what to do, with the deviation
/// that this belongs to.
pub(super) const fn of_firmware(
    version: u8,
    message_type: u8,
    error: (u16, u16),
) -> Option<(Quirk, &'static str)> {
    const FLOW_MOD: u8 = 14;
    let quirk = match (version, message_type) {
        (4, _) => Quirk::OpenFlow13,
        (_, FLOW_MOD) => Quirk::BrokenFlowMods,
        _ => Quirk::NoReassembly,
    };
    let text = match (version, error.0, error.1) {
        (1, 1, 2) => "there is no such port, or it is native; the error has xid 0 and no data (quirk 31)",
        (1, 1, 3) => "the error has no data (quirk 24)",
        (1, 2, 4) => "the firmware has no port NORMAL; name the output port (quirk 56)",
        (1, 3, 0) => {
            "the table or its memory is full (deleted entries free no memory until the next connection); install fewer entries, or \
             reconnect (quirk 47)"
        }
        (4, 1, 11) => "there is no such port, or it is native; the error has xid and data of another message (quirk 109)",
        (4, 5, 1) => {
            "512 entries, no free block of memory, or more than 96 bytes of match or instructions; what was to be replaced is gone, \
             and memory is lost until the flows are cleared (quirks 121 to 123, 125)"
        }
        (4, 5, 3) => "flag 0x0200 acts in the place of CHECK_OVERLAP (quirk 126)",
        (4, 6, 0) => "the group exists, or its id is none of 1 to 4 (quirk 166)",
        (4, 6, 12) => "more than 64 bytes of buckets; the id is taken all the same (quirk 168)",
        (4, 12, 10) => "the board has eight meters; delete one",
        (4, 12, 11) => "a meter has three bands at most, or there is no memory for them (quirk 180)",
        _ => return None,
    };
    Some((quirk, text))
}
